"""`clearloop data make` and `clearloop data check`."""

from pathlib import Path
from typing import Annotated

import typer

from clearloop.cli.options import Json, Seed, TaskName, print_json
from clearloop.errors import ClearloopError

MOST_TRANSITIONS = 100_000_000
FORMATS = (".csv", ".parquet")

data = typer.Typer(help="Make and examine batches of logged transitions.", no_args_is_help=True)


@data.command()
def make(
    task: Annotated[
        str, typer.Argument(help="A built-in task, or a task file with a plant.", metavar="TASK")
    ],
    out: Annotated[Path, typer.Option(help="Where to write it: .csv or .parquet.", metavar="FILE")],
    size: Annotated[
        int | None,
        typer.Option(help="Transitions; the task's own number if not given.", min=1, max=MOST_TRANSITIONS),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Draw a batch from a task's plant, with random actions.

    Example: clearloop data make cartpole --out batch.csv
    """
    import numpy as np

    from clearloop.plants.exploration import make_batch
    from clearloop.task import Task

    if out.suffix.lower() not in FORMATS:
        raise ClearloopError(f"--out {out}: expected a name that ends in {' or '.join(FORMATS)}")
    batch = make_batch(Task.load(task), rng=np.random.default_rng(seed), size=size)
    batch.save(out)
    typer.echo(f"{out}: {batch!r}")


@data.command()
def check(
    file: Annotated[Path, typer.Argument(help="A batch: .csv or .parquet.", metavar="FILE")],
    task: TaskName,
    as_json: Json = False,
) -> None:
    """Examine a batch: is it fit to learn from?

    Example: clearloop data check batch.csv --task cartpole
    """
    from clearloop.data import check as examine
    from clearloop.data import read
    from clearloop.task import Task

    report = examine(read(file), Task.load(task))
    if as_json:
        print_json(report.to_dict())
    else:
        from clearloop.cli.terminal import say, table

        say(report.verdict)
        table(("", "what", "found"), report.rows())
    if report.severity == "problem":
        raise typer.Exit(1)
