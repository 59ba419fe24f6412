"""The commands `evaluate` and `simulate` score a controller and compute a trajectory of the closed loop."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.model import find_batch
from clearloop.cli.options import (
    PLANT,
    ControllerName,
    Json,
    On,
    Run,
    Seed,
    TaskOfRun,
    controller_file,
    find_surrogate,
    find_task,
    load_controller,
    parse_assignment,
    print_json,
)
from clearloop.cli.terminal import echo, progress, say
from clearloop.errors import ClearloopError
from clearloop.numbers import estimate, format_penalty, percent

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from clearloop.controllers import Controller
    from clearloop.data import Batch
    from clearloop.evaluation import FittedQ, SetpointChange, Trajectory
    from clearloop.evaluation.q_evaluation import Approximator
    from clearloop.plants.scenarios import Scenarios
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
    """Estimate the penalty of a controller from logged transitions alone, with progress on standard error.

    Args:
        controller: The controller.
        task: Its task.
        data: The files of a log; if there are none, the batch of the run, or one that the task's plant makes.
            Setpoints that are columns of the log are taken at their median.
        run: The run directory, if one is given.
        approximator: "networks" or "trees".
        starts: States to start from, [N, S], or how many points of the scoring set.
        seed: The seed of the fits, and of a batch that is made.

    Raises:
        ClearloopError: The controller remembers too much, or an option is wrong.
    """
    import numpy as np

    from clearloop.diagnosis import aimed
    from clearloop.evaluation.q_evaluation import check_memory, fitted_q

    check_memory(controller, task)
    chosen = _find_approximator(approximator)
    batch = _find_batch(task, data, run, seed)
    at_rest = aimed(controller, task, batch)
    added = {name: aim for name, aim in at_rest.setpoint.items() if name not in controller.setpoint}
    if added:
        aims = ", ".join(f"{name} = {aim:g}" for name, aim in added.items())
        say(f"The estimate is for one setpoint, the median of the log: {aims}", err=True)
    controller = at_rest
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
    from clearloop.evaluation.q_evaluation import NetworkFits, Trees

    known: dict[str, type[Approximator]] = {"networks": NetworkFits, "trees": Trees}
    if name not in known:
        raise ClearloopError(f"--approximator {name}: expected {' or '.join(known)}")
    return known[name]()


def _find_batch(task: "Task", data: list[Path], run: Path | None, seed: int) -> "Batch":
    if data and run is not None:
        raise ClearloopError("--data and --run both give a batch: give only one of them")
    files = [run / "batch.parquet"] if run is not None else data
    batch = find_batch(task, files, seed)
    if not files:
        say(f"The task's plant made a batch with --seed {seed}: {batch!r}", err=True)
    return batch


def _run_of(controller: str) -> Path | None:
    """Return the run directory that a controller file lies in; None if it lies elsewhere."""
    folder = Path(controller).absolute().parent
    return folder.parent if folder.name == "controllers" and (folder.parent / "run.json").exists() else None


MOST_STARTS = 2**20


def evaluate_command(
    controller: ControllerName,
    run: Run = None,
    task: TaskOfRun = None,
    on: Annotated[
        str,
        typer.Option(
            help="The plant, the model of --run, or the batch alone.",
            metavar="plant|model|batch",
            show_default="plant",
        ),
    ] = "system",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A log for --on batch; repeatable. Else the log of --run, or of the run that the controller "
            "lies in; else the task's plant makes one.",
            metavar="FILE",
        ),
    ] = None,
    approximator: Annotated[
        str, typer.Option(help="What --on batch fits to the data.", metavar="networks|trees")
    ] = "networks",
    seed: Seed = 0,
    starts: Annotated[
        str,
        typer.Option(
            help="How many points of the scoring set, or a CSV with a column for each state.",
            metavar="N|FILE.csv",
        ),
    ] = "1024",
    as_json: Json = False,
) -> None:
    """Score one controller: minus the mean discounted return, and the share of starts that fail.

    On the batch, fitted Q evaluation estimates the penalty, with its standard error over an ensemble. It
    cannot count failures.

    On the model of a run, the models that judged its front score the controller, so that the figures can be
    compared with the front.

    Example: clearloop evaluate examples/published/gprl.json --task cartpole, or:
    clearloop evaluate edited.json --run runs/demo --on model
    """
    from clearloop.evaluation import evaluate as score
    from clearloop.evaluation.promise import promise_interval

    if on not in (*PLANT, "model", "batch"):
        raise ClearloopError(f"--on {on}: expected plant, model or batch")
    if run is None and not data and on in ("model", "batch"):
        run = _run_of(controller)
    the_task = find_task(task, run)
    the_controller = load_controller(controller_file(controller, run), the_task)
    if on == "batch":
        value = evaluate_on_batch(
            the_controller,
            the_task,
            data=data or [],
            run=run,
            approximator=approximator,
            starts=_starts(starts, the_task),
            seed=seed,
        )
        print_json(value.to_dict()) if as_json else echo(value.summary)
        return
    if data:
        raise ClearloopError("--data is used only with --on batch: leave it out, or add --on batch")
    plans = the_controller.plans  # which takes a while
    with progress("Planning") if plans else nullcontext() as tell:
        surrogate = find_surrogate(on, run, the_task)
        result = score(
            the_controller,
            the_task,
            surrogate=surrogate,
            members=None if surrogate is None else surrogate.judge_members,
            starts=_situations(starts, the_task, run if on == "model" else None),
            progress=(lambda share: tell(share, "")) if tell else None,
        )
    interval = None if surrogate is None else promise_interval(result.penalties, surrogate)
    if as_json:
        print_json({**result.to_dict(), "on": on} | ({"interval": list(interval)} if interval else {}))
        return
    penalty = estimate(result.penalty, result.standard_error)
    where = "plant" if on in PLANT else f"model, mean of {result.penalties.shape[0]}"
    echo(f"penalty   {penalty}   (on the {where}, {result.penalties.shape[1]:,} starts)")
    if interval:
        low, high = (format_penalty(end) for end in interval)
        echo(f"interval  {low} … {high}   (holds the true penalty in 95 of 100 cases)")
    echo(f"failures  {percent(result.failures)}")


def _situations(text: str, task: "Task", run: Path | None) -> "Scenarios | NDArray[float64] | int":
    # If a task's starts come from the log, a model is scored from the rows that judged the run's front.
    from clearloop.data import Batch
    from clearloop.runs import RunDirectory
    from clearloop.runs.front import judging_starts

    starts = _starts(text, task)
    if not isinstance(starts, int) or task.start_box is not None or run is None:
        return starts
    batch = Batch.load(run / "batch.parquet", task)
    return judging_starts(RunDirectory(run), task, batch, starts)


def _starts(text: str, task: "Task") -> "NDArray[float64] | int":
    if text.lower().endswith(".csv"):
        return _read_starts(Path(text), task)
    if not text.isdecimal() or len(text) > len(str(MOST_STARTS)) or not 1 <= int(text) <= MOST_STARTS:
        raise ClearloopError(f"--starts {text}: expected a number from 1 to {MOST_STARTS:,}, or a .csv file")
    return int(text)


def _read_starts(path: Path, task: "Task") -> "NDArray[float64]":
    import numpy as np

    from clearloop.data import read
    from clearloop.data.cells import numbers

    frame = read(path)
    if not len(frame):
        raise ClearloopError(f"{path}: has no rows: expected at least one state to start from")
    columns = []
    for name in task.state_names:
        if task.plant is not None and task.plant.package is not None and name not in task.plant.settings:
            columns.append(np.zeros(len(frame)))  # a package begins as it does
            continue
        if name not in frame.columns:
            raise ClearloopError(f"{path}: no column '{name}'; the columns are: {', '.join(frame.columns)}")
        values, problems = numbers(frame[name], np.zeros(len(frame), np.bool_))
        for problem in problems:
            raise ClearloopError(f"{path}: {problem.message.rpartition('; ')[0]}")
        columns.append(values)
    return np.stack(columns, axis=1)


# Simulation.

_MOST_STEPS = 1_000_000
_FORMATS = (".csv", ".png", ".svg")


def simulate_command(
    controller: ControllerName,
    run: Run = None,
    task: TaskOfRun = None,
    on: On = "system",
    start: Annotated[
        list[str] | None,
        typer.Option(help="The start value of a state, 0 if not given; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    setpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="A setpoint from a step on, from step 0 if not given; repeatable.", metavar="NAME=VALUE@STEP"
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="How many steps; the task's horizon if not given.", min=1, max=_MOST_STEPS, metavar="N"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write numbers (.csv) or a picture (.png, .svg); standard output if not given.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Simulate a controller from one start, and give the trajectory as numbers or as a picture.

    Example: clearloop simulate 003 --run runs/demo --out run.png, or:
    clearloop simulate examples/published/pid.json --task cartpole
    --start theta=0.3 --setpoint rho=1@200 --steps 400 --out pid.png
    """
    from clearloop.evaluation import simulate as roll

    if out is not None and out.suffix.lower() not in _FORMATS:
        raise ClearloopError(f"--out {out}: expected a name that ends in {' or '.join(_FORMATS)}")
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
        from clearloop.data.batch import write

        write(frame, out)
    else:
        from clearloop.figures.style import save_figure
        from clearloop.figures.trajectories import draw_trajectories

        save_figure(draw_trajectories({label: trajectory}), out)
    echo(f"{out}: {trajectory.actions.shape[1]:,} steps")


def _setpoint(text: str, steps: int) -> "SetpointChange":
    from clearloop.evaluation import SetpointChange

    assignment, at, step = text.partition("@")
    name, value = parse_assignment(assignment, "--setpoint")
    if at and not (step.isdecimal() and len(step) <= len(str(_MOST_STEPS)) and int(step) < steps):
        raise ClearloopError(
            f"--setpoint {text}: expected NAME=VALUE@STEP, with a STEP below --steps {steps}"
        )
    return SetpointChange(name, value, int(step or 0))
