"""`clearloop report`."""

from pathlib import Path
from typing import Annotated

import typer

from clearloop.cli.front import read_front


def report(
    run: Annotated[Path, typer.Argument(help="The directory of a finished run.", metavar="RUN")],
) -> None:
    """Write the report of a run: one file for a browser, which needs no network.

    Example: clearloop report runs/demo
    """
    from clearloop.report.writing import write_report
    from clearloop.runs import RunDirectory

    directory = RunDirectory(run)
    read_front(directory)
    typer.echo(f"Report     {write_report(directory)}")
