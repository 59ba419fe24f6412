"""Pieces of work for engines: they must be found in a module, because they are sent to other processes."""

import os
import signal
from pathlib import Path


def square(number: int) -> int:
    return number**2


def fail(folder: Path) -> None:
    _count(folder)
    raise ValueError("two\nlines")


def die_at_first(folder: Path, times: int) -> str:
    if _count(folder) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def tries(folder: Path) -> int:
    return len(list(folder.glob("*.try")))


def _count(folder: Path) -> int:
    """How often it was called, this time included."""
    (folder / f"{tries(folder)}.try").touch()
    return tries(folder)
