"""`clearloop demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.front import print_front
from clearloop.cli.learn import make_request, start
from clearloop.cli.options import Seed
from clearloop.cli.resumption import Given

if TYPE_CHECKING:
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

TASK = "cartpole"


def demo(
    out: Annotated[Path, typer.Option(help="The run directory.", metavar="DIR")] = Path("runs/demo"),
    seed: Seed = 0,
    budget: Annotated[
        str, typer.Option(help="How long to search.", metavar="quick|standard|full|N")
    ] = "quick",
) -> None:
    """Learn readable controllers for the built-in cart-pole from a log, and test them on the plant.

    Example: clearloop demo --out runs/demo
    """
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

    task, run = Task.load(TASK), RunDirectory(out)
    start(run, make_request("demo", TASK, Given(budget=budget, seed=seed)), task, replacing="demo")
    _draw(task, run)
    print_front(run)
    for name, what in (
        ("model.png", "how far to trust the model"),
        ("trajectories.png", "the pick and the published equation at work"),
    ):
        typer.echo(f"Figure     {run.path / name}: {what}")


def _draw(task: "Task", run: "RunDirectory") -> None:
    """As in the paper's figure of PID and GPRL: a setpoint that changes after 200 steps."""
    from clearloop.controllers import load
    from clearloop.evaluation import SetpointChange, simulate
    from clearloop.published import CARTPOLE
    from clearloop.report.style import save_figure
    from clearloop.report.trajectory import draw_trajectories

    pick = run.describe()["pick"]["controller"]
    known = {published.file: published for published in CARTPOLE}
    controllers = {
        f"{pick}, the pick": load(run.path / "controllers" / f"{pick}.json"),
        "published GPRL": known["gprl"].load(),
        "published PID": known["pid"].load(),
    }
    change = SetpointChange("rho", 1.0, 200)
    trajectories = {
        title: simulate(controller, task, start={"theta": 0.3, "rho": -1.0}, setpoints=[change], steps=400)
        for title, controller in controllers.items()
    }
    save_figure(draw_trajectories(trajectories), run.path / "trajectories.png")
