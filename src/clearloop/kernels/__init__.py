"""The compiled work: arrays and named tuples in, preallocated arrays out. The only place that uses numba.

Nothing here knows of files, tasks or people. Importing it compiles nothing; the first call of a kernel
does, once per machine, and leaves the result in a cache on disk (`compilation.py`).
"""

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def when_compiling(say: Callable[[], None]) -> None:
    """Have `say` called whenever a kernel is about to be compiled; not when it comes from the cache."""
    _listeners.append(say)


def tell_listeners() -> None:
    """Call everybody who wants to know that a kernel is about to be compiled."""
    for say in _listeners:
        say()
