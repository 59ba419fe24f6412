"""`clearloop show`."""

from pathlib import Path
from typing import Annotated

import typer

from clearloop.cli.bench_table import print_bench
from clearloop.cli.export import read_controller
from clearloop.cli.front import front_document, print_front
from clearloop.cli.options import Json, Run, controller_file, print_json


def show(
    what: Annotated[
        str,
        typer.Argument(
            help="A run directory; a controller file, or with --run, its number.", metavar="RUN_OR_CONTROLLER"
        ),
    ],
    run: Run = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="For a controller: whose limits and units to use where the file has none; the run's, if not "
            "given.",
            metavar="TASK",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the front of a run, the table of a bench, or one controller in words.

    Example: clearloop show runs/demo, or: clearloop show 003 --run runs/demo, or:
    clearloop show examples/published/pid.json --task cartpole
    """
    if run is None and Path(what).is_dir():
        from clearloop.runs import RunDirectory

        directory = RunDirectory(Path(what))
        if directory.describe()["asked"].get("command") == "bench":
            print_bench(directory, as_json)
        else:
            print_json(front_document(directory)) if as_json else print_front(directory)
    else:
        _show_controller(what, task, run, as_json)


def _show_controller(name: str, task: str | None, run: Path | None, as_json: bool) -> None:
    import json

    from clearloop.cli.terminal import say
    from clearloop.controllers import to_json

    loaded = read_controller(controller_file(name, run), task, run)
    if as_json:
        print_json(
            {**json.loads(to_json(loaded)), "complexity": loaded.complexity, "summary": loaded.summary}
        )
        return
    if loaded.name:
        say(loaded.name)
    for line in (*loaded.words(), f"Complexity {loaded.complexity}."):
        say(line)
