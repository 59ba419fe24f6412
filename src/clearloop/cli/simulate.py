"""`clearloop simulate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import (
    ControllerName,
    On,
    Run,
    TaskOfRun,
    controller_file,
    find_surrogate,
    find_task,
    load_controller,
    parse_assignment,
)
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.evaluation import SetpointChange, Trajectory

MOST_STEPS = 1_000_000
FORMATS = (".csv", ".png", ".svg")


def simulate(
    controller: ControllerName,
    run: Run = None,
    task: TaskOfRun = None,
    on: On = "system",
    start: Annotated[
        list[str] | None,
        typer.Option(help="Where to start; 0 where not named. Repeatable.", metavar="NAME=VALUE"),
    ] = None,
    setpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="A setpoint, from a step on; @0 if not given. Repeatable.", metavar="NAME=VALUE@STEP"
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="The task's horizon if not given.", min=1, max=MOST_STEPS, metavar="N")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Numbers (.csv) or a picture (.png, .svg).", metavar="FILE")
    ] = None,
) -> None:
    """Run a controller from one start, as numbers or as a picture.

    Example: clearloop simulate 003 --run runs/demo --out run.png, or:
    clearloop simulate examples/published/pid.json --task cartpole
    --start theta=0.3 --setpoint rho=1@200 --steps 400 --out pid.png
    """
    from clearloop.evaluation import simulate as roll

    if out is not None and out.suffix.lower() not in FORMATS:
        raise ClearloopError(f"--out {out}: expected a name that ends in {' or '.join(FORMATS)}")
    the_task, file = find_task(task, run), controller_file(controller, run)
    steps = steps or the_task.horizon
    the_controller = load_controller(file, the_task)
    if on == "model" and run is not None:
        from clearloop.data import Batch
        from clearloop.diagnosis import aimed

        the_controller = aimed(the_controller, the_task, Batch.load(run / "batch.parquet", the_task))
    trajectory = roll(
        the_controller,
        the_task,
        surrogate=find_surrogate(on, run, the_task),
        start=dict(parse_assignment(text, "--start") for text in start or []),
        setpoints=[_setpoint(text, steps) for text in setpoint or []],
        steps=steps,
    )
    _write(trajectory, out, file.stem)


def _write(trajectory: "Trajectory", out: Path | None, label: str) -> None:
    frame = trajectory.to_frame()
    if out is None:
        typer.echo(frame.write_csv(), nl=False)
        return
    if out.suffix.lower() == ".csv":
        from clearloop.data.write import write

        write(frame, out)
    else:
        from clearloop.report.style import save_figure
        from clearloop.report.trajectory import draw_trajectories

        save_figure(draw_trajectories({label: trajectory}), out)
    typer.echo(f"{out}: {trajectory.actions.shape[1]:,} steps")


def _setpoint(text: str, steps: int) -> "SetpointChange":
    from clearloop.evaluation import SetpointChange

    assignment, at, step = text.partition("@")
    name, value = parse_assignment(assignment, "--setpoint")
    if at and not (step.isdecimal() and len(step) <= len(str(MOST_STEPS)) and int(step) < steps):
        raise ClearloopError(
            f"--setpoint {text}: expected NAME=VALUE@STEP, with a STEP below --steps {steps}"
        )
    return SetpointChange(name, value, int(step or 0))
