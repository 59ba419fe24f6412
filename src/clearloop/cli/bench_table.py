"""The table of a bench, in a terminal."""

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING

import typer

from clearloop.cli.options import print_json
from clearloop.cli.terminal import count, table
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.bench.table import Row
    from clearloop.runs import RunDirectory


def print_bench(run: "RunDirectory", as_json: bool) -> None:
    """The table of a finished bench."""
    from clearloop.bench.table import Row
    from clearloop.published import published_for
    from clearloop.runs.tables import read_table

    if run.describe()["status"] != "finished":
        raise ClearloopError(f"{run.path}: no table yet, the bench is not finished; go on with --resume")
    rows = read_table(run.path / "table.csv", Row)
    if as_json:
        print_json({"run": str(run.path), "table": [vars(row) for row in rows]})
        return
    in_paper = bool(published_for(run.task()))
    for track in dict.fromkeys(row.track for row in rows):
        typer.echo(f"Track {track}: means ± standard errors over experiments\n")
        _print_track([row for row in rows if row.track == track], in_paper)
        typer.echo()
    failed = sum(row.penalty_model is None for row in rows)
    if failed:
        typer.echo(f"Failed     {count(failed, 'experiment')}: table.md says why")
    typer.echo(f"Table      {run.path / 'table.md'}: also which method is better, and how sure that is")


def _print_track(rows: "Sequence[Row]", in_paper: bool) -> None:
    """A line for each method; what the paper says of its own starts beside it."""
    from clearloop.bench.table import PAPER, Mean

    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        mine = [row for row in rows if row.method == method]
        model, system = (Mean.of([getattr(r, f"penalty_{on}") for r in mine]) for on in ("model", "system"))
        done = sum(row.penalty_model is not None for row in mine)
        failures = [row.failures_system for row in mine if row.failures_system is not None]
        paper = [figure.partition(" ")[0] for figure in PAPER.get(method, ("", ""))] if in_paper else []
        figures = [str(model), *paper[:1], str(system), *paper[1:]]
        lines.append([method, *figures, f"{100 * mean(failures):.1f} %" if failures else "", str(done)])
    paper_titles = ["paper"] if in_paper else []
    titles = ["method", "model", *paper_titles, "plant", *paper_titles, "failures", "n"]
    table(titles, lines, right=range(1, len(titles)))
