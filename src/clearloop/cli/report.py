"""The commands `report` and `card` write pages about a run and about one of its controllers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import ControllerName, RunFolder, controller_file
from clearloop.cli.show import read_front
from clearloop.cli.terminal import echo, progress
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
    echo(f"Report     {make_report(directory)}")


def make_report(run: "RunDirectory") -> Path:
    """Write the report of a run, with progress on standard error; each controller takes some seconds."""
    from clearloop.pages.report import write_report

    with progress("Report") as tell:
        return write_report(run, lambda share: tell(share, "examining the controllers"))


def card(
    controller: ControllerName,
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write the card; if not given, both kinds are written into the run directory.",
            metavar="FILE.html|FILE.pdf",
        ),
    ] = None,
) -> None:
    """Write the sign-off sheet of a controller: one or two pages, for a browser and for print.

    It shows the formula and what each part does, gains and margins, starts, disturbances and costs, and says
    which data and which model they come from.

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
        echo(f"Card       {path}")
