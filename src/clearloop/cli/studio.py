"""The command `studio` serves the local web page."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from clearloop.cli.terminal import echo

PORT = 8765


def studio(
    runs: Annotated[Path, typer.Argument(help="The folder of runs and batches.", metavar="RUNS_DIR")] = Path(
        "runs"
    ),
    port: Annotated[
        int,
        typer.Option(
            help="The port, on this machine only; 0 takes a free port.", min=0, max=65535, metavar="P"
        ),
    ] = PORT,
    task: Annotated[
        str, typer.Option(help="The task to play first: built-in or a task file.", metavar="TASK")
    ] = "cartpole",
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve a page on this machine: play, learn from it, watch controllers drive, read reports.

    Example: clearloop studio
    """
    from clearloop.studio.server import serve

    def ready(address: str) -> None:
        echo(f"Studio     {address}")
        echo("Stop       Ctrl-C")
        if show:
            import webbrowser

            webbrowser.open(address)

    with suppress(KeyboardInterrupt):
        serve(runs, task, port, ready)
    echo("Stopped", err=True)
