"""Where the work of a bench is done: here, in a process for each piece, or on a Dask cluster.

A piece whose worker dies, or that fails, is tried again; after three times it is given up, and the rest goes
on. What comes out does not depend on the engine.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

TRIES = 3


class Call(NamedTuple):
    """A function of a module, and its arguments: all of it can be sent elsewhere."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Failure(NamedTuple):
    reason: str
    """of the last try, in one line"""


class Engine(ABC):
    @abstractmethod
    def run(self, calls: Mapping[str, Call]) -> Iterator[tuple[str, Any]]:
        """The results, or `Failure`s, with their keys, as they come. The first calls are begun first."""

    @abstractmethod
    def close(self) -> None:
        """Stop what is still being done."""


def reason(error: BaseException) -> str:
    """In one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
