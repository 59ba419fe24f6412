"""Compiling takes a while, once for each machine and version: whoever talks to people can say so."""

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def when_compiling(say: Callable[[], None]) -> None:
    """Have `say` called whenever a kernel is about to be compiled; not when it comes from the cache."""
    _listeners.append(say)


def tell() -> None:
    for say in _listeners:
        say()
