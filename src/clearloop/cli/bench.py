"""The command `bench` compares methods by many experiments each, and makes the paper's table."""

import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.learn import Given, check_given, find_methods
from clearloop.cli.model import find_batch, find_track
from clearloop.cli.options import Json, Robust, is_robust, parse_budget
from clearloop.cli.show import print_bench
from clearloop.cli.terminal import InterruptedRunError, echo, progress
from clearloop.errors import ClearloopError, quoted
from clearloop.registry import METHODS

if TYPE_CHECKING:
    from clearloop.bench.engines import Engine
    from clearloop.bench.table import Bench, Course
    from clearloop.runs import RunDirectory
    from clearloop.task import Task


def bench(
    task: Annotated[str, typer.Argument(help="A built-in task, or a file with a plant.", metavar="TASK")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(METHODS)}; repeatable. All methods of the paper if not given.", metavar="NAME"
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Experiments of each method; --resume can add more.",
            min=1,
            max=1000,
            metavar="N",
            show_default="10",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="The same seed gives the same table.", min=0, metavar="N", show_default="0"),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            help="One batch and model for all experiments, as in the paper, or a new one for each.",
            metavar="shared|fresh",
            show_default="shared",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="How long each experiment searches, or its model steps.",
            metavar="quick|standard|full|N",
            show_default="standard",
        ),
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(
            help="best: our improved model. published: the paper's, which promises too much. "
            "both: one after the other.",
            metavar="best|published|both",
            show_default="best",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run directory.", metavar="DIR")] = Path("runs/bench"),
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the bench in --out; finished experiments are not repeated."),
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            help="The cores of this machine, a Dask cluster on it, or your own cluster.",
            metavar="local|dask|dask:ADDRESS",
        ),
    ] = "local",
    robust: Robust = None,
    as_json: Json = False,
) -> None:
    """Compare methods by many experiments each: the paper's table.

    Example: clearloop bench cartpole --seeds 2 --budget quick --out runs/bench
    """
    from clearloop.bench.experiment import Store
    from clearloop.bench.table import Course
    from clearloop.runs import RunDirectory, directory
    from clearloop.task import Task

    start, the_task = find_engine(engine), Task.load(task)
    if not the_task.explorable:
        raise ClearloopError(
            f"the task {quoted(the_task.name)} has no [plant] with equations, which a bench needs to make its"
            " batches: choose another task, or use clearloop learn"
        )
    given = Given(methods=tuple(method or ()), budget=budget, track=track, seed=seed, robust=robust)
    run = RunDirectory(out)
    begun = resume and run.exists
    if begun:
        asked = go_on(run, the_task, given, seeds, batch)
    else:
        if resume:
            echo(f"{run.path}: holds no run to continue, so a new run starts", err=True)
        asked = make_bench(task, given, seeds or 10, "shared" if batch is None else batch)
    with run.held() if begun else run.claimed():
        make = partial(find_batch, the_task, [], asked.request.seed)
        if begun:
            run.batch(the_task, make)
        else:
            run.begin(the_task, make(), asked.to_dict())
        course, description = Course(asked, the_task, Store(run)), run.describe()
        tabled = description["status"] == "finished" and description["asked"]["seeds"] == asked.seeds
        if not tabled or course.done < course.total:
            directory.check_version(run, description["versions"])
            with closing(start()) as workers:
                words = ["clearloop", "bench", task, "--out", str(out), "--resume"]
                again = shlex.join(words if engine == "local" else [*words, "--engine", engine])
                carry_out(run, course, workers, again)
    print_bench(run, as_json)


def make_bench(task: str, given: Given, seeds: int, batch: str) -> "Bench":
    """Make a bench from the given options, with defaults for the others."""
    from clearloop.bench.table import Bench, paper_methods
    from clearloop.runs import Request

    track = "best" if given.track is None else given.track
    if batch not in ("shared", "fresh"):
        raise ClearloopError(f"--batch {batch}: expected shared or fresh")
    request = Request(
        command="bench",
        task=task,
        methods=tuple(find_methods(given.methods or tuple(paper_methods()))),
        budget=parse_budget("standard" if given.budget is None else given.budget),
        track=track if track == "both" else find_track(track).name,
        seed=given.seed or 0,
        robust=is_robust(given.robust, track),
    )
    return Bench(request=request, seeds=seeds, fresh=batch == "fresh")


def go_on(run: "RunDirectory", task: "Task", given: Given, seeds: int | None, batch: str | None) -> "Bench":
    """Find the bench that is to be continued, perhaps with more or fewer experiments now.

    Raises:
        ClearloopError: The task or an option does not agree with the bench; the message says which.
    """
    from clearloop.bench.table import Bench
    from clearloop.runs import directory

    description = run.describe()
    directory.check_command(run, description["asked"], "bench")
    try:
        bench = Bench.from_dict(description["asked"])
    except ClearloopError as error:
        raise ClearloopError(f"{run.path}: cannot be continued: {error}") from error
    directory.check_task(run, description["task"], task)
    check_given(run, bench.request, given)
    if batch is not None:
        directory.check_option(run, "--batch", bench.to_dict()["batch"], batch)
    return replace(bench, seeds=seeds or bench.seeds)


def find_engine(name: str) -> "Callable[[], Engine]":
    """Return a function that starts the engine of a name that `--engine` gives."""
    from clearloop.bench.engines import Dask, Local

    kind, _, address = name.partition(":")
    if name == "local":
        return Local
    if kind == "dask" and (address or name == "dask"):
        return partial(Dask, address)
    raise ClearloopError(
        f"--engine {name}: expected local, dask, or dask:ADDRESS with the address of a scheduler"
    )


def carry_out(run: "RunDirectory", course: "Course", engine: "Engine", again: str) -> None:
    """Carry out a bench from where it stopped to its tables.

    Args:
        run: The run, whose directory the caller has locked.
        course: The pieces of work.
        engine: Does the work.
        again: The command that continues the bench.

    Raises:
        InterruptedRunError: The user pressed Ctrl-C.
    """
    from clearloop.bench.table import write_tables

    run.go_on(asked=course.bench.to_dict())
    try:
        _carry_out(course, engine)
    except KeyboardInterrupt as stop:
        run.mark("interrupted")
        done = f"{course.done} of {course.total} pieces of work"
        raise InterruptedRunError(f"interrupted, with {done} done; to continue: {again}") from stop
    write_tables(run, course)
    run.mark("finished")


def _carry_out(course: "Course", engine: "Engine") -> None:
    from clearloop.bench.engines import Failure

    with progress("Experiments") as tell:
        done, total = course.done, course.total

        def report(key: str, outcome: Any) -> None:
            nonlocal done
            done += 1
            said = f"gave up: {outcome.reason}" if isinstance(outcome, Failure) else "done"
            tell(course.share, f"{done} of {total}, {key} {said}")

        tell(course.share, f"{done} of {total}")
        course.go(engine, report)
