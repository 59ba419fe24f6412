"""`clearloop report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import ControllerName, RunFolder, controller_file
from clearloop.cli.show import read_front
from clearloop.cli.terminal import progress
from clearloop.errors import ClearloopError

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
    from clearloop.pages.report import write_report

    with progress("Report") as tell:
        return write_report(run, lambda share: tell(share, "examining the controllers"))


# `clearloop card`.


def card(
    controller: ControllerName,
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it; both kinds into the run directory if not given.",
            metavar="FILE.html|FILE.pdf",
        ),
    ] = None,
) -> None:
    """Write the sign-off sheet of a controller: one or two pages, for a browser and for print.

    Formula and what each part does, gains and margins, starts, disturbances, costs, and what it all rests on.

    Example: clearloop card 003 --run runs/demo, or: clearloop card mine.json --run runs/demo --out mine.pdf
    """
    from clearloop.pages.card import contents, write_card
    from clearloop.runs import RunDirectory

    directory = RunDirectory(run)
    file = controller_file(controller, run)
    if out is not None and out.suffix.lower() not in (".html", ".pdf"):
        raise ClearloopError(f"--out {out}: expected a name that ends in .html or .pdf")
    with progress("Card") as tell:
        tell(0.0, "examining the controller")
        made = contents(file, directory)
    for path in [out] if out else [run / f"card-{file.stem}{kind}" for kind in (".html", ".pdf")]:
        write_card(made, path)
        typer.echo(f"Card       {path}")
