"""A finished run from Python: its front, its controllers, and the pages that the shell writes about them."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from clearloop.controllers import Controller, load
from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.pages.card import contents, write_card
from clearloop.pages.pack import pack
from clearloop.pages.report import write_report
from clearloop.pages.sentences import headline
from clearloop.refining import Judge, Refinement, Settings, refine
from clearloop.runs import Front, RunDirectory, read_trust
from clearloop.runs.front import judging_starts
from clearloop.surrogate import Surrogate
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl


class Run:
    """A finished run of `clearloop learn`, with what the shell does with it: report, card, pack and refine.

    A controller goes by its number in the front, such as "003"; without a number, the pick is taken.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a run.

        Args:
            path: The run directory.

        Raises:
            ClearloopError: There is no run, or it is not finished.
        """
        self.directory = RunDirectory(Path(path))
        self._about = self.directory.describe()
        if self._about["status"] != "finished" or not (self.directory.path / "front.csv").exists():
            raise ClearloopError(f"{path}: this run has no front, or not yet: see `clearloop show {path}`")
        self._front = Front.read(self.directory)

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.path

    @cached_property
    def task(self) -> Task:
        """The task of the run."""
        return self.directory.task()

    @cached_property
    def batch(self) -> Batch:
        """The log that the run learned from."""
        return Batch.load(self.path / "batch.parquet", self.task)

    @cached_property
    def surrogate(self) -> Surrogate:
        """The model that the run learned."""
        return Surrogate.load(self.path / "surrogate", self.task)

    @cached_property
    def front(self) -> "pl.DataFrame":
        """The rows of `front.csv`, a controller each, from the simplest to the best."""
        import polars as pl

        return pl.DataFrame([vars(entry) for entry in self._front.entries], infer_schema_length=None)

    @property
    def pick(self) -> str:
        """The number of the controller that the run has picked."""
        return self._front.entries[self._front.pick].controller

    def controller(self, number: str | None = None) -> Controller:
        """Return a controller of the front.

        Args:
            number: Its number.

        Raises:
            ClearloopError: The front has no such controller.
        """
        return load(self._file(number)).for_task(self.task)

    def report(self) -> Path:
        """Write the report, as `clearloop report`, and return its path."""
        return write_report(self.directory)

    def card(self, number: str | None = None, *, out: str | Path | None = None) -> Path:
        """Write the sheet to sign for a controller, as `clearloop card`, and return its path.

        Args:
            number: The number of the controller.
            out: The file, .html or .pdf; None is `card-NUMBER.html` in the run directory.

        Raises:
            ClearloopError: The front has no such controller, or the file cannot be written.
        """
        file = self._file(number)
        path = Path(out) if out is not None else self.path / f"card-{file.stem}.html"
        write_card(contents(file, self.directory), path)
        return path

    def pack(self, number: str | None = None, *, out: str | Path) -> str:
        """Write all that a second person needs to check a controller, as `clearloop pack`.

        Args:
            number: The number of the controller.
            out: The zip to write.

        Returns:
            The SHA-256 of the zip.

        Raises:
            ClearloopError: The controller cannot be exported, or the zip cannot be written.
        """
        return pack(self._file(number), self.path, out)

    def refine(
        self, number: str | None = None, *, digits: int = 2, drop: bool = False, tolerance: float = 0.01
    ) -> Refinement:
        """Simplify a controller as far as its penalty on the models allows, as `clearloop refine`.

        Args:
            number: The number of the controller.
            digits: The fewest digits that a constant may keep.
            drop: Whether parts may be left out.
            tolerance: The share of the penalty that all steps together may add.

        Returns:
            The simpler controller, which `clearloop.save` writes, and the steps towards it.

        Raises:
            ClearloopError: A person cannot read the controller.
        """
        given, settings = self.controller(number), Settings(digits=digits, drop=drop, tolerance=tolerance)
        starts = judging_starts(self.directory, self.task, self.batch)
        return refine(given, Judge(given, self.task, self.surrogate, starts), settings)

    def _file(self, number: str | None) -> Path:
        number = number or self.pick
        if number not in [entry.controller for entry in self._front.entries]:
            known = ", ".join(entry.controller for entry in self._front.entries)
            raise ClearloopError(f"{self.path}: no controller {quoted(number)}; this run has {known}")
        return self.path / "controllers" / f"{number}.json"

    def __repr__(self) -> str:
        return f"{self.path.name}: {headline(self._front, *read_trust(self.directory, self._about))}"
