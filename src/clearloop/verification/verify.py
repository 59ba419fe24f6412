"""The proof: the export and the original on the same test vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError
from clearloop.export.lowering import lower
from clearloop.export.precision import PRECISIONS
from clearloop.export.targets import Files, export
from clearloop.expression import Variable
from clearloop.files import whole_file
from clearloop.verification.bench import c_bench, vectors_csv
from clearloop.verification.expectation import expect
from clearloop.verification.plc_bench import plc_bench
from clearloop.verification.running import RUNNERS, Trial
from clearloop.verification.vectors import Amount, Episode, rounded, vectors


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether an export is the same function."""

    to: str
    precision: str
    vectors: int
    """steps that were compared"""
    left_out: int
    """steps in which the last places of a number decide"""
    difference: float
    """the largest one of an action, relative to its range"""
    tolerance: float

    @property
    def equal(self) -> bool:
        return self.difference <= self.tolerance


def verify(
    controller: Controller,
    *,
    to: str,
    folder: Path,
    rng: np.random.Generator,
    name: str = "controller",
    precision: str = "double",
    log: Sequence[Episode] = (),
    amount: Amount | None = None,
) -> Verdict:
    """Export to a folder, write the test bench beside it, run both and compare.

    `log`: episodes of inputs to try first; their sizes are those of the random ones.
    """
    if to not in RUNNERS:
        raise ClearloopError(f"--to {to}: what is exported there does not run; verify: {', '.join(RUNNERS)}")
    files = export(controller, to=to, name=name, precision=precision)
    exact, routine = PRECISIONS[precision], lower(controller)
    made = vectors(routine, exact, rng=rng, amount=amount or Amount(), scales=_scales(log))
    expectation = expect(controller, routine, [*(rounded(episode, exact) for episode in log), *made], exact)
    bench: Files = {"vectors.csv": vectors_csv(routine, expectation)}
    if to == "c":
        file, text = c_bench(routine, name, exact, expectation.tolerance)
        bench[file] = text
    if to == "st":
        bench[f"{Path(next(iter(files))).stem}_bench.st"] = plc_bench(
            controller, routine, name, exact, expectation
        )
    for file, text in {**files, **bench}.items():
        with whole_file(folder / file) as opened:
            opened.write(text.encode())
    found = RUNNERS[to](Trial(folder, list(files), routine, expectation.episodes))
    if found.shape != expectation.actions.shape:
        raise ClearloopError(
            f"the exported code gave {len(found)} answers to {len(expectation.actions)} steps"
        )
    return Verdict(
        to=to,
        precision=precision,
        vectors=int(expectation.compared.sum()),
        left_out=int((~expectation.compared).sum()),
        difference=expectation.difference(found),
        tolerance=expectation.tolerance,
    )


def _scales(log: Sequence[Episode]) -> dict[Variable, float]:
    """The usual size of each input."""
    sizes: dict[Variable, list[float]] = {}
    for episode in log:
        for step in episode:
            for name, value in step.items():
                sizes.setdefault(name, []).append(abs(value))
    return {name: max(float(np.median(values)), 1e-9) for name, values in sizes.items()}
