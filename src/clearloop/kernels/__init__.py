"""The kernels are compiled functions of arrays and named tuples; this is the only package that uses numba.

Nothing here knows of files, tasks or people. Importing it compiles nothing; the first call of a kernel does,
once per machine, and leaves the result in a cache on disk (`compilation.py`).
"""

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def when_compiling(say: Callable[[], None]) -> None:
    """Call `say` whenever a kernel is about to be compiled, but not when it comes from the cache."""
    _listeners.append(say)


def tell_listeners() -> None:
    """Call all functions that `when_compiling` was given."""
    for say in _listeners:
        say()
