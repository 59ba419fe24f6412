"""This is the command line `clearloop`. Bad input gives one line on standard error and exit code 2."""

import os

# Our matrices are small. More threads only wait for each other, for minutes on a busy machine, and their sums
# depend on the number of cores. The library of NumPy reads this once, when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from clearloop.cli.program import main

__all__ = ["main"]
