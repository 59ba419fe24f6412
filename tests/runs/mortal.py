"""`clearloop` that has its model in a moment, counts what it does to files, and kills itself at one of them.

`MORTAL_AT=7`: with SIGKILL, before the seventh time that a file or folder below the current one is opened
for writing, renamed, removed or made. `MORTAL_COUNT=FILE`: the number of these operations goes into FILE.
"""

import atexit
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from clearloop.cli import learn, main
from clearloop.registry import METHODS
from clearloop.runs import learning
from tests.runs.guessing import Guess, linear_model

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Operations:
    """Counts file operations below a folder, by Python's audit events."""

    def __init__(self, folder: Path, last: int) -> None:
        self.folder, self.last, self.count = f"{folder}{os.sep}", last, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
            return
        if event == "open" and not arguments[2] & _WRITING:
            return
        name = arguments[0]
        if isinstance(name, int) or not os.path.abspath(os.fsdecode(name)).startswith(self.folder):  # noqa: PTH100
            return
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":  # and not in the processes of a bench, which import this file
    METHODS["guess"] = Guess
    pytest.MonkeyPatch().setattr(learn, "learn_model", linear_model)
    learning.CHECKPOINT_SECONDS = 0.0
    operations = Operations(Path.cwd(), int(os.environ.get("MORTAL_AT", "0")))
    if target := os.environ.get("MORTAL_COUNT"):
        file = Path(target)
        atexit.register(lambda: file.write_text(str(operations.count)))
    sys.addaudithook(operations)
    main()
