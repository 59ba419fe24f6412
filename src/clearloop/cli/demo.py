"""`clearloop demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.model import assess_model, find_batch, learn_model, print_quality
from clearloop.cli.options import Seed
from clearloop.cli.terminal import table

if TYPE_CHECKING:
    from clearloop.surrogate import Surrogate
    from clearloop.task import Task


def demo(
    out: Annotated[Path, typer.Option(help="The run directory.", metavar="DIR")] = Path("runs/demo"),
    seed: Seed = 0,
) -> None:
    """Learn a model of the built-in cart-pole from a log, and test controllers on model and plant.

    Example: clearloop demo --out runs/demo
    """
    from clearloop.runs import RunDirectory
    from clearloop.surrogate import BEST, PUBLISHED
    from clearloop.task import Task

    task = Task.load("cartpole")
    run = RunDirectory.create(out)
    batch = find_batch(task, [], seed)
    asked = {"command": "demo", "seed": seed}
    run.begin(task, batch, asked)
    typer.echo(f"Batch      {batch!r}")
    surrogate = learn_model(task, batch, BEST, seed)
    surrogate.save(run.path / "surrogate")
    typer.echo(f"Surrogate  {surrogate.members} members of {len(task.states)} networks, one for each state")
    print_quality(assess_model(surrogate, batch, run))
    naive = learn_model(task, batch, PUBLISHED, seed)
    naive.save(run.path / "surrogate-published")
    _compare(task, naive, surrogate)
    _draw(task, run.path / "trajectories.png")
    run.finish(task, batch, asked)
    for name, what in (
        ("model.png", "how far to trust the model"),
        ("trajectories.png", "PID and GPRL at work"),
    ):
        typer.echo(f"Figure     {run.path / name}: {what}")


def _compare(task: "Task", naive: "Surrogate", surrogate: "Surrogate") -> None:
    """The published controllers: what two models promise, and what the plant charges."""
    from clearloop.evaluation import evaluate
    from clearloop.published import CARTPOLE

    rows, gaps = [], []
    for published in CARTPOLE:
        controller = published.load()
        scores = [evaluate(controller, task, surrogate=model) for model in (naive, surrogate, None)]
        *promised, charged = (score.penalty for score in scores)
        rows.append(
            (published.title, *(f"{score.penalty:.2f}" for score in scores), f"{scores[-1].failures:.1%}")
        )
        if published.system is not None:
            gaps.append([promise / charged - 1 for promise in promised])
    typer.echo("\nPenalty of the published controllers (less is better), 1,024 starts")
    table(("controller", "paper's way", "our model", "plant", "failures"), rows, right=(1, 2, 3, 4))
    published_gap, best_gap = (max(column, key=abs) for column in zip(*gaps, strict=True))
    typer.echo(
        f"A model learned the paper's way promises up to {abs(published_gap):.0%} less than the plant\n"
        f"charges: it misses failures. Ours stays within {abs(best_gap):.1%}, so that a search on it\n"
        "can be believed.\n"
    )


def _draw(task: "Task", path: Path) -> None:
    """The paper's figure of PID and GPRL: a setpoint that changes after 200 steps."""
    from clearloop.evaluation import SetpointChange, simulate
    from clearloop.published import CARTPOLE
    from clearloop.report.style import save_figure
    from clearloop.report.trajectory import draw_trajectories

    change = SetpointChange("rho", 1.0, 200)
    trajectories = {
        published.title: simulate(
            published.load(), task, start={"theta": 0.3, "rho": -1.0}, setpoints=[change], steps=400
        )
        for published in CARTPOLE
        if published.file in ("gprl", "pid")
    }
    save_figure(draw_trajectories(trajectories), path)
