"""The commands `learn` and `demo` make a run: they start it or continue it, and print what it does."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from clearloop.cli.model import (
    assess_model,
    find_batch,
    find_track,
    learn_model,
    manageable,
    print_reasons,
    searching,
)
from clearloop.cli.options import (
    Data,
    Json,
    Robust,
    Seed,
    answer,
    configure,
    in_words,
    is_robust,
    parse_budget,
    print_json,
)
from clearloop.cli.report import make_report
from clearloop.cli.show import front_document, how_to_resume, print_front
from clearloop.cli.terminal import InterruptedRunError, echo, say
from clearloop.errors import ClearloopError, UnsuitableError
from clearloop.files import file_name, read_json
from clearloop.numbers import clock, counted
from clearloop.registry import METHODS

if TYPE_CHECKING:
    from clearloop.data import Batch
    from clearloop.methods import Method
    from clearloop.runs import Ledger, Request, RunDirectory
    from clearloop.surrogate import Surrogate
    from clearloop.task import Task


# Carrying out a request: the model, the searches, the judgement, the report.


def carry_out_request(
    run: "RunDirectory",
    request: "Request",
    task: "Task",
    batch: "Batch",
    *,
    err: bool = False,
    force: bool = False,
) -> None:
    """Carry out a run from where it stopped, or from the beginning, until it has all its files.

    Args:
        run: The run, whose directory the caller has locked.
        request: What was asked.
        task: The task.
        batch: The data to learn from.
        err: Print on standard error.
        force: Search even if the model cannot support a controller.

    Raises:
        InterruptedRunError: The user pressed Ctrl-C.
    """
    finished = run.describe()["status"] == "finished"
    if finished and (missing := _missing(run, request)):
        say(
            f"{run.path}: the run is finished; these missing files are written now: {', '.join(missing)}",
            err=True,
        )
    try:
        if not finished:
            run.go_on()
            _carry_out(run, request, task, batch, err, force)
        _complete(run, request, task, batch)
    except KeyboardInterrupt as stop:
        if run.describe()["status"] != "finished":
            run.mark("interrupted")
        raise InterruptedRunError(f"interrupted; to continue: {how_to_resume(request.task, run)}") from stop
    if not finished:
        echo(err=err)


def _missing(run: "RunDirectory", request: "Request") -> list[str]:
    """Find the pages and figures that a finished run must have, and does not have."""
    promised = ["model.png", "report.html"]
    if read_json(run.path / "surrogate" / "surrogate.json").get("repetition"):
        promised.append("replays.png")
    if request.command == "demo":
        promised.append("trajectories.png")
    return [name for name in promised if not (run.path / name).exists()]


def _complete(run: "RunDirectory", request: "Request", task: "Task", batch: "Batch") -> None:
    """Write the pages and figures that a finished run does not have yet."""
    from clearloop.surrogate import Surrogate

    run.sweep()
    missing = _missing(run, request)
    if "model.png" in missing:
        assess_model(Surrogate.load(run.path / "surrogate", task), batch, run)
    if "replays.png" in missing:
        _repeated(run, task, batch, Surrogate.load(run.path / "surrogate", task))
    if "report.html" in missing:
        make_report(run)
    if "trajectories.png" in missing:
        _draw(task, run)


def _carry_out(
    run: "RunDirectory", request: "Request", task: "Task", batch: "Batch", err: bool, force: bool
) -> None:
    from clearloop.runs import Ledger, examine_front, finish, polite_interruption, run_method

    ledger = Ledger(run)
    echo(f"Batch      {batch!r}", err=err)
    surrogate = _surrogate(run, request, task, batch, ledger)
    quality = _quality(run, surrogate, batch)
    echo(f"Surrogate  {counted(surrogate.members, 'model')} of the plant: {quality['verdict']}", err=err)
    if quality["verdict"] != "good":
        print_reasons(quality, err=err)
    if surrogate.repetition is not None:
        say(f"Replays    {surrogate.repetition.words}", indent=" " * 11, err=err)
    _trust(run, request, task, batch, surrogate, force)
    results, unsuited = [], {}
    with polite_interruption() as interruption:
        for method in request.methods:
            try:
                with searching(method.name) as tell:
                    result = run_method(
                        run, method, task, batch, surrogate, budget=request.budget, value=request.value,
                        robust=request.robust, stay=request.stay, seed=request.seed, ledger=ledger,
                        tell=tell, interruption=interruption,
                    )  # fmt: skip
            except UnsuitableError as reason:
                unsuited[method.name] = reason
                say(f"Search     {method.name} is left out: {reason}", indent=" " * 11, err=True)
                continue
            results.append(result)
            took = clock(sum(row.seconds for row in ledger.timing if row.method == method.name))
            found = counted(len(result.points), "controller")
            steps = "model" if request.value == "model" else "logged"
            echo(f"Search     {method.name}: {found}, {result.steps:,} {steps} steps, {took}", err=err)
    if not results:
        raise next(iter(unsuited.values()))
    if unsuited:
        run.mark("running", left_out={name: str(reason) for name, reason in unsuited.items()})
    examine_front(run, task, batch, surrogate, [point for result in results for point in result.points])
    finish(run, task, surrogate, results)


def _surrogate(
    run: "RunDirectory", request: "Request", task: "Task", batch: "Batch", ledger: "Ledger"
) -> "Surrogate":
    """Load the model of the run, or learn it."""
    from clearloop.surrogate import Surrogate

    folder = run.path / "surrogate"
    if (folder / "surrogate.json").exists():
        return Surrogate.load(folder, task)
    with ledger.phase("surrogate"):
        surrogate = learn_model(task, batch, find_track(request.track), request.seed)
    with ledger.phase("replays"):
        surrogate = _repeated(run, task, batch, surrogate)
    surrogate.save(folder)
    return surrogate


def _repeated(run: "RunDirectory", task: "Task", batch: "Batch", surrogate: "Surrogate") -> "Surrogate":
    """Let the model repeat the log in closed loop, and draw how well it does."""
    from clearloop.figures.model import draw_replays
    from clearloop.figures.style import save_figure
    from clearloop.methods.learning import repeat_log

    surrogate, replays = repeat_log(task, batch, surrogate)
    if replays is not None:
        save_figure(draw_replays(replays), run.path / "replays.png")
    return surrogate


def _trust(
    run: "RunDirectory", request: "Request", task: "Task", batch: "Batch", surrogate: "Surrogate", force: bool
) -> None:
    """Refuse a model that cannot support a controller; if forced, write the doubts into `run.json`."""
    from clearloop.surrogate import examine_model

    found = [finding for finding in examine_model(task, batch, surrogate) if finding.severity == "problem"]
    if found:
        before = run.describe().get("doubts", [])
        new = [one for one in in_words(found) if one not in before]
        run.mark("running" if force else "refused", doubts=[*before, *new])
    answer(", ".join(request.data) or f"the task {task.name}", found, force=force)


def _quality(run: "RunDirectory", surrogate: "Surrogate", batch: "Batch") -> dict[str, Any]:
    file = run.path / "quality.json"
    if not file.exists():
        return assess_model(surrogate, batch, run).to_dict()
    quality: dict[str, Any] = read_json(file)
    if not (isinstance(quality, dict) and isinstance(quality.get("verdict"), str) and _texts(quality)):
        raise ClearloopError(f"{file}: damaged: delete it, and continue with --resume")
    return quality


def _texts(quality: dict[str, Any]) -> bool:
    reasons = quality.get("reasons")
    return isinstance(reasons, list) and all(isinstance(reason, str) for reason in reasons)


# Continuing a run: the request stays as it was, and options that are given again must agree with it.


class Given(NamedTuple):
    """The options of `learn` (and some of `bench`) that the user gave; None or empty if not given."""

    data: tuple[Path, ...] = ()
    methods: tuple[str, ...] = ()
    budget: str | None = None
    track: str | None = None
    seed: int | None = None
    settings: tuple[str, ...] = ()
    value: str | None = None
    forms: tuple[str, ...] = ()
    robust: str | None = None
    stay: float | None = None


def continue_run(run: "RunDirectory", task: "Task", given: Given) -> "tuple[Request, Batch]":
    """Find the request and the batch of a run that is to be continued.

    Raises:
        ClearloopError: The task or an option does not agree with the run; the message says which.
    """
    from clearloop.runs import Ledger, Request, directory

    begun = perf_counter()
    description = run.describe()
    directory.check_command(run, description["asked"], "learn", "demo")
    try:
        request = Request.from_dict(description["asked"])
    except ClearloopError as error:
        raise ClearloopError(f"{run.path}: cannot be continued: {error}") from error
    if description["status"] != "finished":
        directory.check_version(run, description["versions"])
    directory.check_task(run, description["task"], task)
    check_given(run, request, given)
    directory.check_settings(run, request.methods, shape(request.methods, given.forms, task))
    batch = _batch(run, task, request, given, description["data"]["fingerprint"])
    ledger = Ledger(run)
    if description["status"] != "finished" and not any(row.phase == "batch" for row in ledger.timing):
        ledger.took("batch", perf_counter() - begun)  # the run was killed before it noted this
    return request, batch


def check_given(run: "RunDirectory", request: "Request", given: Given) -> None:
    """Check that the given options, except the data, agree with the request of a run."""
    from clearloop.runs import directory

    names = tuple(method.name for method in request.methods)
    if given.methods:
        directory.check_option(run, "--method", names, tuple(dict.fromkeys(given.methods)))
    if given.budget is not None:
        directory.check_option(run, "--budget", request.budget, parse_budget(given.budget))
    if given.track is not None:
        directory.check_option(run, "--track", request.track, given.track)
    if given.value is not None:
        directory.check_option(run, "--value", request.value, given.value)
    if given.robust is not None:
        asked = is_robust(given.robust, request.track)
        directory.check_option(run, "--robust", _on(request.robust), _on(asked))
    if given.stay is not None:
        directory.check_option(run, "--stay", request.stay, given.stay)
    if given.seed is not None:
        directory.check_option(run, "--seed", request.seed, given.seed)
    directory.check_settings(run, request.methods, configure(request.methods, given.settings))


def _on(robust: bool) -> str:
    return "on" if robust else "off"


def _batch(run: "RunDirectory", task: "Task", request: "Request", given: Given, fingerprint: str) -> "Batch":
    """Load the run's copy of the batch; make it again if the run was stopped before it was written."""
    from clearloop.data import Batch
    from clearloop.runs import directory

    if given.data:
        names = ", ".join(map(str, given.data))
        directory.check_data(run, fingerprint, manageable(task, Batch.load(given.data, task)), names)
    files = [Path(file) for file in request.data]
    return run.batch(
        task, lambda: manageable(task, find_batch(task, files, request.seed)), ", ".join(request.data)
    )


def learn_command(
    task: Annotated[str, typer.Argument(help="A built-in task or a task file.", metavar="TASK")],
    data: Data = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(METHODS)}; repeatable.",
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
        bool, typer.Option("--resume", help="Continue the run in --out from its last checkpoint.")
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
    form: Annotated[
        list[str] | None,
        typer.Option(
            help="What equations must look like: {…} is searched, k1 is tuned, as in k1*x + tanh({…}). "
            "With several actions ACTION=TEMPLATE; repeatable (docs/methods.md).",
            metavar="TEMPLATE",
        ),
    ] = None,
    robust: Robust = None,
    stay: Annotated[
        float | None,
        typer.Option(
            help="How near to the log controllers must stay: 1 is the log, 0 does not ask.",
            min=0.0,
            max=1.0,
            metavar="0…1",
            show_default="0",
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
    given = Given(
        tuple(data or ()), tuple(method or ()), budget, track, seed, tuple(settings or ()), value,
        tuple(form or ()), robust, stay,
    )  # fmt: skip
    run = RunDirectory(out or Path("runs") / file_name(the_task.name))
    if resume and run.exists:
        with run.held():
            request, batch = continue_run(run, the_task, given)
            carry_out_request(run, request, the_task, batch, err=as_json, force=force)
    else:
        if resume:
            echo(f"{run.path}: holds no run to continue, so a new run starts", err=True)
        request = make_request("learn", task, given)
        request = replace(request, methods=shape(request.methods, given.forms, the_task))
        start(run, request, the_task, err=as_json, force=force)
    if as_json:
        print_json(front_document(run))
    else:
        print_front(run)


def make_request(command: str, task: str, given: Given) -> "Request":
    """Make a request from the given options, with defaults for the others."""
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
        robust=is_robust(given.robust, track),
        stay=given.stay or 0.0,
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
    """Start a new run and carry it out.

    Args:
        run: The directory of the run.
        request: What is asked.
        task: The task.
        replacing: A command whose earlier run in this directory may be replaced.
        err: Print on standard error.
        force: Search even if the data cannot support a controller.
    """
    from clearloop.plants.gym import check_plant
    from clearloop.runs import Ledger

    begun = perf_counter()
    run.check_free(replacing=replacing)
    check_plant(task)
    batch = find_batch(task, [Path(file) for file in request.data], request.seed)
    doubts = examine_data(task, batch, request, force=force) if request.data else []
    batch = manageable(task, batch)
    with run.claimed(replacing=replacing):
        run.begin(task, batch, request.to_dict(), **({"doubts": doubts} if doubts else {}))
        Ledger(run).took("batch", perf_counter() - begun)
        carry_out_request(run, request, task, batch, err=err, force=force)


def shape(methods: "tuple[Method, ...]", forms: tuple[str, ...], task: "Task") -> "tuple[Method, ...]":
    """Give the templates of `--form` to the method that searches equations.

    Args:
        methods: The methods.
        forms: The templates, each with the name of its action before it if the task has several.
        task: The task.

    Raises:
        ClearloopError: A text is no template of an action, or no method searches equations.
    """
    from clearloop.methods.gprl import GPRL, read_form
    from clearloop.search.gp.templates import split_form

    found: dict[str, str] = {}
    for text in forms:
        action, template = split_form(text)
        if not action and len(task.actions) > 1:
            names = ", ".join(task.actions)
            raise ClearloopError(f"--form {text}: write ACTION=TEMPLATE, because the task has {names}")
        action = action or task.action_names[0]
        if action in found:
            raise ClearloopError(f"--form {text}: {action} has a template already: write one for each action")
        found[action] = template
    try:
        read_form(found, task)
    except ClearloopError as error:
        raise ClearloopError(f"--{error}") from error
    if found and not any(isinstance(method, GPRL) for method in methods):
        raise ClearloopError("--form: only gprl searches equations: add --method gprl, or leave --form out")
    return tuple(replace(one, form=found) if found and isinstance(one, GPRL) else one for one in methods)


def find_methods(names: tuple[str, ...]) -> "list[Method]":
    """Return the methods of these names, each once, with their default settings."""
    from clearloop.methods.method import find_method

    return [find_method(name)() for name in dict.fromkeys(names)]


def find_value(name: str, methods: "tuple[Method, ...]") -> str:
    """Check the value of `--value`; all of the methods must be able to search with it."""
    from clearloop.methods import VALUES

    if name not in VALUES:
        raise ClearloopError(f"--value {name}: expected {' or '.join(VALUES)}")
    for method in methods:
        if name == "batch" and method.needs_model:
            raise ClearloopError(
                f"--value batch: {method.name} needs a model: leave out --value or this method"
            )
    return name


def examine_data(task: "Task", batch: "Batch", request: "Request", *, force: bool) -> list[dict[str, str]]:
    """Check the user's log before any model is learned; see `answer`."""
    from clearloop.data import check

    report = check(task, batch)
    if report.severity == "warning":
        say(report.verdict, err=True)
    return answer(", ".join(request.data), report.refusals, force=force)


# The demo.

TASK = "cartpole"


def demo(
    out: Annotated[Path, typer.Option(help="The run directory.", metavar="DIR")] = Path("runs/demo"),
    seed: Seed = 0,
    budget: Annotated[
        str, typer.Option(help="How long to search.", metavar="quick|standard|full|N")
    ] = "quick",
    robust: Robust = None,
) -> None:
    """Learn readable controllers for the built-in cart-pole from a log, and test them on the plant.

    Example: clearloop demo --out runs/demo
    """
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

    task, run = Task.load(TASK), RunDirectory(out)
    start(
        run,
        make_request("demo", TASK, Given(budget=budget, seed=seed, robust=robust)),
        task,
        replacing="demo",
    )
    print_front(run)
    for name, what in (
        ("model.png", "how far to trust the model"),
        ("trajectories.png", "the pick and the published equation at work"),
    ):
        echo(f"Figure     {run.path / name}: {what}")


def _draw(task: "Task", run: "RunDirectory") -> None:
    # Like the paper's figure of PID and GPRL: the setpoint changes after 200 steps.
    from clearloop.controllers import load
    from clearloop.evaluation import SetpointChange, simulate
    from clearloop.figures.style import save_figure
    from clearloop.figures.trajectories import draw_trajectories
    from clearloop.published import CARTPOLE

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
