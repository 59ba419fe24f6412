"""`clearloop` that has models in a moment, keeps a checkpoint after every round, and kills itself.

`KILL_AT=front.csv:1`: with SIGKILL, when a file of that name is whole and is about to take its place, the
first time. `KILL_AT=front.csv:1:2`: with SIGINT, Ctrl-C.
"""

import os
import signal
from pathlib import Path

import pytest

from clearloop.cli import main
from clearloop.runs import learning
from tests.runs.guessing import make_quick


def kill_at(name: str, count: int, signal_number: int) -> None:
    replace = Path.replace

    def deadly(self: Path, target: str | Path) -> Path:
        nonlocal count
        count -= Path(target).name == name
        if count == 0:
            count -= 1
            os.kill(os.getpid(), signal_number)
        return replace(self, target)

    Path.replace = deadly  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    make_quick(pytest.MonkeyPatch())
    learning.CHECKPOINT_SECONDS = 0.0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test runner may have switched it off
    if place := os.environ.get("KILL_AT"):
        name, number, *other = place.split(":")
        kill_at(name, int(number), int(other[0]) if other else signal.SIGKILL)
    main()
