"""Run directories: what was asked, what it was learned from, and what came out."""

from clearloop.runs.directory import RunDirectory

__all__ = ["RunDirectory"]
