"""`clearloop show`."""

from pathlib import Path
from typing import Annotated

import typer

from clearloop.cli.options import Json, print_json


def show(
    controller: Annotated[Path, typer.Argument(help="A controller file.", metavar="CONTROLLER")],
    task: Annotated[
        str | None, typer.Option(help="The task whose limits and units to use where the file has none.", metavar="TASK")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a controller in words.

    Example: clearloop show examples/published/pid.json --task cartpole
    """
    import json

    from clearloop.controllers import load, to_json
    from clearloop.task import Task

    loaded = load(controller)
    if task is not None:
        loaded = loaded.for_task(Task.load(task))
    if as_json:
        print_json({**json.loads(to_json(loaded)), "complexity": loaded.complexity, "summary": loaded.summary})
        return
    if loaded.name:
        typer.echo(loaded.name)
    for line in loaded.words():
        typer.echo(line)
    typer.echo(f"Complexity {loaded.complexity}.")
