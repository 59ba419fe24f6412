"""The commands `data make`, `record`, `convert`, `check` and `explain` make and examine logs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import Commands, Json, Seed, TaskName, print_json
from clearloop.cli.terminal import echo, print_table, say, shell_word
from clearloop.errors import ClearloopError
from clearloop.numbers import careful_percent

if TYPE_CHECKING:
    from clearloop.data import Batch
    from clearloop.diagnosis.margins import LoggedMargins
    from clearloop.explanation import Account, Explanation
    from clearloop.methods.plant_answers import Answer
    from clearloop.task import Task

_MOST_TRANSITIONS = 100_000_000
_FORMATS = (".csv", ".parquet")

data = Commands(help="Make and examine batches of logged transitions.", no_args_is_help=True)


@data.command()
def make(
    task: Annotated[
        str, typer.Argument(help="A built-in task, or a task file with a plant.", metavar="TASK")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the batch: .csv or .parquet.", metavar="FILE")],
    size: Annotated[
        int | None,
        typer.Option(
            help="How many transitions; the task's own number if not given.",
            min=1,
            max=_MOST_TRANSITIONS,
            metavar="N",
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Run a task's plant to make a batch, with random actions or with the law that the task gives.

    Example: clearloop data make cartpole --out batch.csv
    """
    import numpy as np

    from clearloop.plants.exploration import make_batch
    from clearloop.task import Task

    _check_format(out)
    batch = make_batch(Task.load(task), rng=np.random.default_rng(seed), size=size)
    batch.save(out)
    echo(f"{out}: {batch!r}")


@data.command("record")
def record_log(
    environment: Annotated[
        str, typer.Argument(help="A Gymnasium environment, such as Pendulum-v1.", metavar="ENV_ID")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the log: .csv or .parquet.", metavar="FILE")],
    steps: Annotated[
        int, typer.Option(help="How many transitions.", min=1, max=_MOST_TRANSITIONS, metavar="N")
    ] = 10_000,
    seed: Seed = 0,
) -> None:
    """Record a log of random actions in a Gymnasium environment.

    Example: clearloop data record Pendulum-v1 --out pendulum.csv
    """
    from clearloop.data.batch import write
    from clearloop.data.recording import record as log_of

    _check_format(out)
    frame = log_of(environment, steps, seed)
    write(frame, out)
    say(f"{out}: {steps:,} transitions in {frame['episode'].n_unique():,} episodes, random actions")
    say(f"Next   draft a task file with clearloop init {out} --dt SECONDS, the environment's time step")


@data.command()
def convert(
    file: Annotated[str, typer.Argument(help="A log, as in `data check`.", metavar="FILE")],
    task: TaskName,
    out: Annotated[str, typer.Option(help="A .csv or .parquet file, or minari:NAME.", metavar="FILE")],
) -> None:
    """Write a log as a task reads it: on its time grid, with derived states; or as a Minari dataset.

    Example: clearloop data convert log.csv --task task.toml --out minari:plant/logged-v0
    """
    from clearloop.data import Batch
    from clearloop.data.batch import minari_name, write_minari
    from clearloop.task import Task

    name = minari_name(out)
    if name is None:
        _check_format(Path(out))
    batch = Batch.load(file, Task.load(task))
    if name is None:
        batch.save(out)
    else:
        write_minari(batch, name)
    echo(f"{out}: {batch!r}")


def _check_format(out: Path) -> None:
    if out.suffix.lower() not in _FORMATS:
        raise ClearloopError(f"--out {out}: expected a name that ends in {' or '.join(_FORMATS)}")


@data.command("check")
def check_log(
    file: Annotated[
        str, typer.Argument(help="A log: .csv, .parquet, .xlsx, .npz or minari:NAME.", metavar="FILE")
    ],
    task: TaskName,
    as_json: Json = False,
) -> None:
    """Examine a batch: is it fit to learn from?

    Example: clearloop data check batch.csv --task cartpole
    """
    from clearloop.data import check as examine
    from clearloop.data import read
    from clearloop.task import Task

    report = examine(Task.load(task), read(file))
    if as_json:
        print_json(report.to_dict())
    else:
        say(report.verdict)
        print_table(("", "what", "found"), report.rows())
    if report.severity == "problem":
        raise typer.Exit(1)


@data.command("explain")
def explain_log(
    file: Annotated[str, typer.Argument(help="A log, as in `data check`.", metavar="FILE")],
    task: TaskName,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the law, as a controller file.", metavar="CONTROLLER")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find out how the actions of a batch were chosen: at random, or by which law.

    With --out the law becomes a controller file, to be scored, simulated, tuned and exported like any other.

    Example: clearloop data explain log.csv --task task.toml --out law.json
    """
    from clearloop.data import Batch
    from clearloop.explanation import explain as find_out
    from clearloop.task import Task

    the_task = Task.load(task)
    batch = Batch.load(file, the_task)
    found = find_out(the_task, batch)
    answers, why = _plant_answers(the_task, batch)
    margins = _margins(the_task, batch, found) if answers else None
    if as_json:
        plant = {"answers": [answer.to_dict() for answer in answers], "why": why}
        print_json(found.to_dict() | {"plant": plant, "margins": margins and margins.to_dict()})
    else:
        for account in found.accounts:
            _say_account(account)
        say(
            "The plant, by a linear model of the log:" if answers else f"No linear model of the plant: {why}."
        )
        for answer in answers:
            say(f"    {answer.words}")
        if margins is not None:
            from clearloop.diagnosis.margins import margin_words

            say("The margins of the law, by that model:")
            for words in margin_words(margins):
                say(f"    {words}")
    if out is not None:
        from clearloop.controllers import save

        save(found.controller(), out)
        echo(f"Law  {out}", err=as_json)
    elif not as_json and all(account.chosen == "law" for account in found.accounts):
        say("Next   this writes the law as a controller:")
        echo(f"clearloop data explain {shell_word(file)} --task {shell_word(task)} --out law.json")
        if [account.law.kind for account in found.accounts] in (["PI"], ["PID"]):
            say("       this looks at the plant more closely, and finds new numbers for the law:")
            echo(f"clearloop tune --task {shell_word(task)} --data {shell_word(file)}")


def _plant_answers(task: "Task", batch: "Batch") -> tuple[tuple["Answer", ...], str | None]:
    """Return what the plant does by a linear model of the log, or the reason why there is none."""
    from clearloop.errors import UnsuitableError
    from clearloop.methods.linear_model import identify
    from clearloop.methods.plant_answers import find_answers

    try:
        return find_answers(identify(task, batch)), None
    except UnsuitableError as error:
        return (), str(error)


def _margins(task: "Task", batch: "Batch", found: "Explanation") -> "LoggedMargins | None":
    """Return the margins of a PID that made the log, by the linear model."""
    from clearloop.diagnosis.margins import find_law_margins
    from clearloop.methods.linear_model import identify

    if not all(account.chosen in ("law", "constant") for account in found.accounts):
        return None
    return find_law_margins(found.controller(), identify(task, batch), batch)


def _say_account(account: "Account") -> None:
    from clearloop.explanation.laws import formula

    say(account.verdict)
    if account.chosen == "law":
        say(f"    {account.action} = {formula(account.law)}")
        print_table(("    term", "gain", "standard error"), account.gain_rows(), right=(1, 2))
        for loop in account.loops():
            say(f"    with e = setpoint - {loop}")
        for note in account.notes():
            say(f"    {note}")
    if len(account.tried) > 1:
        say("    tried: " + ", ".join(f"{kind} {careful_percent(share)}" for kind, share in account.tried))
    say(account.advice)
