"""`clearloop evaluate --on batch`: the value of a controller from logged transitions alone."""

from pathlib import Path
from typing import TYPE_CHECKING

from clearloop.cli.model import find_batch
from clearloop.cli.terminal import progress, say
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from clearloop.controllers import Controller
    from clearloop.data import Batch
    from clearloop.evaluation import FittedQ
    from clearloop.evaluation.approximators import Approximator
    from clearloop.task import Task


def evaluate_on_batch(
    controller: "Controller",
    task: "Task",
    *,
    data: list[Path],
    run: Path | None,
    approximator: str,
    starts: "NDArray[float64] | int",
    seed: int,
) -> "FittedQ":
    import numpy as np

    from clearloop.evaluation.q_evaluation import check_memory, fitted_q

    check_memory(controller, task)
    chosen = _find_approximator(approximator)
    batch = _find_batch(task, data, run, seed)
    with progress("Fitted Q evaluation") as tell:
        return fitted_q(
            controller,
            task,
            batch,
            starts=starts,
            approximator=chosen,
            rng=np.random.default_rng([seed, 3]),  # [seed] drew the batch; a run uses 1 and 2
            progress=lambda share: tell(share, ""),
        )


def _find_approximator(name: str) -> "Approximator":
    from clearloop.evaluation.approximators import Networks, Trees

    known: dict[str, type[Approximator]] = {"networks": Networks, "trees": Trees}
    if name not in known:
        raise ClearloopError(f"--approximator {name}: expected {' or '.join(known)}")
    return known[name]()


def _find_batch(task: "Task", data: list[Path], run: Path | None, seed: int) -> "Batch":
    """The log, that of a run, or what a task with a plant makes for itself."""
    if data and run is not None:
        raise ClearloopError("--data and --run: both hold a batch: give one of them")
    files = [run / "batch.parquet"] if run is not None else data
    batch = find_batch(task, files, seed)
    if not files:
        say(f"a batch of its own, with --seed {seed}: {batch!r}", err=True)
    return batch
