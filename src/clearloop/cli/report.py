"""`clearloop report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.front import read_front
from clearloop.cli.terminal import progress

if TYPE_CHECKING:
    from clearloop.runs import RunDirectory


def report(
    run: Annotated[Path, typer.Argument(help="The directory of a finished run.", metavar="RUN")],
) -> None:
    """Write the report of a run: one file for a browser, which needs no network.

    Example: clearloop report runs/demo
    """
    from clearloop.runs import RunDirectory

    directory = RunDirectory(run)
    read_front(directory)
    typer.echo(f"Report     {make_report(directory)}")


def make_report(run: "RunDirectory") -> Path:
    """It takes some seconds for each controller."""
    from clearloop.report.writing import write_report

    with progress("Report") as tell:
        return write_report(run, lambda share: tell(share, "examining the controllers"))
