"""This is the command line `clearloop`. Bad input gives one line on standard error and exit code 2."""

from clearloop.cli.program import main

__all__ = ["main"]
