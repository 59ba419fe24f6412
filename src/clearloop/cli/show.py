"""`clearloop show`."""

from typing import Annotated

import typer

from clearloop.cli.options import ControllerFile, Json, load_controller, print_json


def show(
    controller: ControllerFile,
    task: Annotated[
        str | None,
        typer.Option(help="The task whose limits and units to use where the file has none.", metavar="TASK"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a controller in words.

    Example: clearloop show examples/published/pid.json --task cartpole
    """
    import json

    from clearloop.cli.terminal import say
    from clearloop.controllers import load, to_json
    from clearloop.task import Task

    loaded = load(controller) if task is None else load_controller(controller, Task.load(task))
    if as_json:
        print_json(
            {**json.loads(to_json(loaded)), "complexity": loaded.complexity, "summary": loaded.summary}
        )
        return
    if loaded.name:
        say(loaded.name)
    for line in (*loaded.words(), f"Complexity {loaded.complexity}."):
        say(line)
