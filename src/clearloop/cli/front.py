"""The front of a run, for people and for programs."""

import shlex
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from clearloop.cli.terminal import say, wrapped
from clearloop.errors import ClearloopError
from clearloop.report.sentences import beware, compared, format_penalty, headline, kept, planned, rounded

if TYPE_CHECKING:
    from clearloop.runs import Front, RunDirectory

NARROWEST = 24  # columns for a formula beside its figures


def read_front(run: "RunDirectory") -> "tuple[Front, dict[str, Any]]":
    """Of a finished run, with what `run.json` says of it."""
    from clearloop.runs import Front

    description = run.describe()
    asked = description["asked"]
    if asked.get("command") not in ("learn", "demo"):
        raise ClearloopError(
            f"{run.path}: a run of 'clearloop {asked.get('command')}', which has no front to show"
        )
    if description["status"] == "refused":
        reasons = description["doubts"]
        raise ClearloopError(
            f"{run.path}: no front: not from this data: because {reasons[0]['message']};"
            f" to search all the same: {how_to_resume(asked['task'], run)} --force"
        )
    if description["status"] != "finished":
        how = "was interrupted" if description["status"] == "interrupted" else "is running, or was killed"
        raise ClearloopError(
            f"{run.path}: no front yet, the run {how}; to go on: {how_to_resume(asked['task'], run)}"
        )
    return Front.read(run), description


def how_to_resume(task: str, run: "RunDirectory") -> str:
    return f"clearloop learn {shlex.quote(task)} --out {shlex.quote(str(run.path))} --resume"


def front_document(run: "RunDirectory") -> dict[str, Any]:
    """JSON values."""
    from clearloop.runs import read_trust

    front, description = read_front(run)
    rows, before = read_trust(run, description)
    asked = description["asked"]
    return {
        "run": str(run.path),
        "task": description["task"]["name"],
        **{name: asked[name] for name in ("methods", "budget", "track", "seed")},
        "simplest": front.entries[front.simplest].controller,
        "best": front.entries[front.best].controller,
        "pick": description["pick"],
        "doubts": description.get("doubts", []),
        "left_out": description.get("left_out", {}),
        "log": asdict(before),
        "trust": [asdict(row) | {"warnings": row.warnings} for row in rows],
        "front": [asdict(entry) for entry in front.entries],
        "published": [asdict(known) for known in front.published],
    }


def print_front(run: "RunDirectory") -> None:
    from clearloop.runs import read_trust

    front, description = read_front(run)
    rows, before = read_trust(run, description)
    say(headline(front, rows, before), indent="")
    for doubt in description.get("doubts", []):
        typer.secho(f"FORCED     this data cannot support a controller: {doubt['message']}", fg="red")
    typer.echo()
    _print_table(front, description["task"]["actions"])
    typer.echo()
    known = [f"{row.title} {format_penalty(row.penalty_system)}" for row in front.published if row.in_paper]
    if known:
        say(f"Published  {', '.join(known)} on the plant", indent=" " * 11)
    pick = description["pick"]
    say(f"Pick       {pick['controller']}, {pick['reason']}", indent=" " * 11)
    if front.entries[front.pick].penalty_system is not None:
        say(f"Promise    {kept(front)}", indent=" " * 11)
    if before.penalty is not None or (before.text and front.entries[front.pick].penalty_system is None):
        mine = next((row for row in rows if row.controller == pick["controller"]), None)
        say(f"The log    {compared(mine, before)}", indent=" " * 11)
    for warning in beware(rows):
        say(f"Beware     {warning}", indent=" " * 11)
    for i in front.planners:
        say(f"Planner    {planned(front, i)}", indent=" " * 11)
    if (run.path / "report.html").exists():
        typer.echo(f"Report     {run.path / 'report.html'}")
    typer.echo(f"In words   clearloop show {run.path / 'controllers' / pick['controller']}.json")


def _print_table(front: "Front", actions: dict[str, Any]) -> None:
    tested = front.entries[0].penalty_system is not None
    titles = ["no.", "complexity", "promised", *(["on plant", "failures"] if tested else []), _title(actions)]
    _print_row(titles, "")
    methods = list(dict.fromkeys(entry.method for entry in front.entries))
    for i, entry in enumerate(front.entries):
        if len(methods) > 1 and (i == 0 or front.entries[i - 1].method != entry.method):
            typer.echo(entry.method)
        figures = [entry.controller, str(entry.complexity), format_penalty(entry.penalty_model)]
        if entry.penalty_system is not None and entry.failures_system is not None:
            figures += [format_penalty(entry.penalty_system), f"{100 * entry.failures_system:.1f} %"]
        _print_row([*figures, rounded(entry.formula)], "  <-\0pick" if i == front.pick else "")


def _print_row(cells: list[str], mark: str) -> None:
    """Figures, then a formula: beside them, or below where there is no room."""
    widths = (3, 10, 8, 8, 8)
    figures = "  ".join(cell.rjust(width) for cell, width in zip(cells[:-1], widths, strict=False)) + "  "
    width = shutil.get_terminal_size().columns
    room = width - len(figures)
    beside = room >= NARROWEST
    parts = (cells[-1] + mark).split("; ")  # rules, or the formulas of several actions
    first, *rest = [line for part in parts for line in wrapped(part, room if beside else width - 5, "  ")]
    indent = " " * (len(figures) if beside else 5)
    typer.echo(figures + first if beside else figures.rstrip() + "\n" + indent + first)
    for line in rest:
        typer.echo(indent + line)


def _title(actions: dict[str, Any]) -> str:
    """`controller (force in N)`."""
    if len(actions) > 1:
        return "controller"
    ((name, action),) = actions.items()
    return f"controller ({name} in {action['unit']})" if action.get("unit") else f"controller ({name})"
