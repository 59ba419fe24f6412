"""`clearloop learn`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.execution import carry_out
from clearloop.cli.front import front_document, print_front
from clearloop.cli.model import find_batch, find_track, manageable
from clearloop.cli.options import Data, Json, parse_budget, print_json
from clearloop.cli.refusal import answer
from clearloop.cli.resumption import Given, go_on
from clearloop.cli.settings import configure
from clearloop.errors import ClearloopError
from clearloop.files import file_name

if TYPE_CHECKING:
    from clearloop.data import Batch
    from clearloop.methods import Method
    from clearloop.runs import Request, RunDirectory
    from clearloop.task import Task


def learn(
    task: Annotated[str, typer.Argument(help="A built-in task or a task file.", metavar="TASK")],
    data: Data = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="gprl, fgprl, fpsrl, psonn, nfq, pso-p, lqr, pid, cloning; repeatable.",
            metavar="NAME",
            show_default="gprl",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="How long each method searches, or its number of model steps.",
            metavar="quick|standard|full|N",
            show_default="standard",
        ),
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(
            help="best: our improved model. published: the paper's, which promises too much.",
            metavar="best|published",
            show_default="best",
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            help="Score candidates on the model, or from the log alone (docs/value.md).",
            metavar="model|batch",
            show_default="model",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="The same seed gives the same front.", min=0, metavar="N", show_default="0"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run directory.", metavar="DIR", show_default="runs/TASK")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, from its last checkpoint.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Search even if the data cannot support a controller.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting of a method, such as fpsrl.rules=2,4; repeatable.", metavar="NAME=VALUE"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Learn controllers that a person can read, from a log: a front from the simplest to the best.

    Example: clearloop learn cartpole --budget quick --out runs/cartpole
    """
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

    the_task = Task.load(task)
    given = Given(tuple(data or ()), tuple(method or ()), budget, track, seed, tuple(settings or ()), value)
    run = RunDirectory(out or Path("runs") / file_name(the_task.name))
    if resume and run.exists:
        with run.held():
            request, batch = go_on(run, the_task, given)
            if run.describe()["status"] != "finished":
                carry_out(run, request, the_task, batch, err=as_json, force=force)
    else:
        if resume:
            typer.echo(f"{run.path}: nothing to go on with, so this is the beginning", err=True)
        start(run, make_request("learn", task, given), the_task, err=as_json, force=force)
    if as_json:
        print_json(front_document(run))
    else:
        print_front(run)


def make_request(command: str, task: str, given: Given) -> "Request":
    """What was given, and the usual for what was not."""
    from clearloop.runs import Request

    track = find_track("best" if given.track is None else given.track).name
    methods = configure(find_methods(given.methods or ("gprl",)), given.settings)
    return Request(
        command=command,
        task=task,
        data=tuple(map(str, given.data)),
        methods=methods,
        value=find_value("model" if given.value is None else given.value, methods),
        budget=parse_budget("standard" if given.budget is None else given.budget),
        track=track,
        seed=given.seed or 0,
    )


def start(
    run: "RunDirectory",
    request: "Request",
    task: "Task",
    *,
    replacing: str = "",
    err: bool = False,
    force: bool = False,
) -> None:
    """A new run, to its end; none for data that cannot support a controller, unless forced."""
    from time import perf_counter

    from clearloop.runs import Ledger

    begun = perf_counter()
    run.check_free(replacing=replacing)
    batch = find_batch(task, [Path(file) for file in request.data], request.seed)
    doubts = examine_data(task, batch, request, force=force) if request.data else []
    batch = manageable(task, batch)
    with run.claimed(replacing=replacing):
        run.begin(task, batch, request.to_dict())
        if doubts:
            run.mark("running", doubts=doubts)
        Ledger(run).took("batch", perf_counter() - begun)
        carry_out(run, request, task, batch, err=err, force=force)


def find_methods(names: tuple[str, ...]) -> "list[Method]":
    """Each once, with its usual settings."""
    from clearloop.methods.registry import find_method

    return [find_method(name)() for name in dict.fromkeys(names)]


def find_value(name: str, methods: "tuple[Method, ...]") -> str:
    """That all of the methods can search with."""
    from clearloop.methods import VALUES

    if name not in VALUES:
        raise ClearloopError(f"--value {name}: expected {' or '.join(VALUES)}")
    for method in methods:
        if name == "batch" and method.needs_model:
            raise ClearloopError(f"--value batch: {method.name} needs a model: leave one of them out")
    return name


def examine_data(task: "Task", batch: "Batch", request: "Request", *, force: bool) -> list[dict[str, str]]:
    """What the user's log lacks, before any model is learned: an error, or what `--force` ignores."""
    from clearloop.cli.terminal import say
    from clearloop.data import check

    report = check(batch, task)
    if report.severity == "warning":
        say(report.verdict, err=True)
    return answer(", ".join(request.data), report.refusals, force=force)
