"""A case of the fuzzer."""

import random
from typing import NamedTuple

from tests.fuzz.seeds import Files


class Case(NamedTuple):
    """One command in a folder of its own."""

    family: str
    arguments: list[str]
    files: Files
    typed: bytes = b""  # on standard input
    written: tuple[str, int] | None = None  # also write log.csv as this kind of file, with this seed
    stopped: bool = True  # `learn` and `bench` stop before they train a model, or after a round of a search


def with_json(rng: random.Random, arguments: list[str]) -> list[str]:
    """Now and then ask for JSON."""
    return [*arguments, "--json"] if rng.random() < 0.4 else arguments
