"""The command `show` prints the front of a run, the table of a bench, or a controller in words."""

import json
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.export import read_controller
from clearloop.cli.options import Json, Run, controller_file, print_json
from clearloop.cli.terminal import echo, print_table, say, visible, wrapped
from clearloop.errors import ClearloopError, quoted
from clearloop.numbers import counted, format_penalty, percent, shorten_numbers
from clearloop.pages.sentences import beware, compared, headline, kept, planned, promised, robustness

if TYPE_CHECKING:
    from clearloop.bench.table import Row
    from clearloop.runs import Entry, Front, RunDirectory


# The front of a run, for people and as JSON.

_WIDEST = ("no.", "complexity", "promised", "on plant", "failures", "phase")
_ANY_PHASE = 180.0  # degrees
_NARROWEST = 24  # columns for a formula beside its figures
_MOST_LINES = 2  # of a formula beside its figures; all formulas stand below them if one is longer


def read_front(run: "RunDirectory") -> "tuple[Front, dict[str, Any]]":
    """Read the front and the `run.json` of a finished run.

    Raises:
        ClearloopError: The run has no front, or not yet; the message says how to get one.
    """
    from clearloop.runs import Front

    description = run.describe()
    asked = description["asked"]
    if (command := asked.get("command")) not in ("learn", "demo"):
        raise ClearloopError(
            f"{run.path}: holds a run of {quoted(f'clearloop {command}')}, which has no front"
        )
    if description["status"] == "refused":
        reasons = description["doubts"]
        raise ClearloopError(
            f"{run.path}: has no front: no controller can be learned from its data: {reasons[0]['message']};"
            f" to search nevertheless: {how_to_resume(asked['task'], run)} --force"
        )
    if description["status"] != "finished":
        how = "was interrupted" if description["status"] == "interrupted" else "is running, or was killed"
        raise ClearloopError(
            f"{run.path}: has no front yet: the run {how}; to continue: {how_to_resume(asked['task'], run)}"
        )
    front = Front.read(run)
    if description["pick"]["controller"] not in [entry.controller for entry in front.entries]:
        raise ClearloopError(
            f"{run.path / 'run.json'}: damaged: the controller that it picks is not in front.csv"
        )
    return front, description


def how_to_resume(task: str, run: "RunDirectory") -> str:
    """Return the command that continues a run."""
    return f"clearloop learn {shlex.quote(task)} --out {shlex.quote(str(run.path))} --resume"


def front_document(run: "RunDirectory") -> dict[str, Any]:
    """Return the front of a finished run, and what is known about it, as JSON values."""
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
        "front": [_finite(asdict(entry)) for entry in front.entries],
        "published": [asdict(known) for known in front.published],
    }


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without infinite margins, which JSON cannot say: null."""
    return {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in row.items()}


def print_front(run: "RunDirectory", *, every: bool = False) -> None:
    """Print the front of a finished run for people.

    Args:
        run: The run.
        every: Whether to list controllers that are not fit to be picked, too.
    """
    from clearloop.runs import read_trust

    front, description = read_front(run)
    rows, before = read_trust(run, description)
    say(headline(front, rows, before), indent="")
    for doubt in description.get("doubts", []):
        said = f"FORCED     this data cannot support a controller: {doubt['message']}"
        typer.secho(visible(said), fg="red")
    echo()
    _print_table(front, description["task"]["actions"], every=every)
    echo()
    known = [f"{row.title} {format_penalty(row.penalty_system)}" for row in front.published if row.in_paper]
    if known:
        say(f"Published  {', '.join(known)} on the plant", indent=" " * 11)
    pick = description["pick"]
    if words := robustness(front):
        say(f"Robust     {words}", indent=" " * 11)
    say(f"Pick       {pick['controller']}, {pick['reason']}", indent=" " * 11)
    if front.entries[front.pick].penalty_system is not None:
        say(f"Promise    {kept(front)}", indent=" " * 11)
    elif words := promised(front.entries[front.pick]):
        say(f"Promise    {words}", indent=" " * 11)
    if before.penalty is not None or (before.text and front.entries[front.pick].penalty_system is None):
        mine = next((row for row in rows if row.controller == pick["controller"]), None)
        say(f"The log    {compared(mine, before, front.entries[front.pick])}", indent=" " * 11)
    for warning in beware(rows):
        say(f"Beware     {warning}", indent=" " * 11)
    for i in front.planners:
        say(f"Planner    {planned(front, i)}", indent=" " * 11)
    if (run.path / "report.html").exists():
        echo(f"Report     {run.path / 'report.html'}")
    echo(f"In words   clearloop show {run.path / 'controllers' / pick['controller']}.json")


def _print_table(front: "Front", actions: dict[str, Any], *, every: bool) -> None:
    tested = front.entries[0].penalty_system is not None
    known = any(entry.robust is not None for entry in front.entries)
    titles = ["no.", "complexity", "promised", *(["on plant", "failures"] if tested else [])]
    titles += [*(["phase"] if known else []), _title(actions)]
    heading, width = _figures(titles[:-1]), shutil.get_terminal_size().columns
    shown = [entry for i, entry in enumerate(front.entries) if every or i in front.shown]
    longest = max((len(rule) for entry in shown for rule in _rules(entry)), default=0)
    beside = width - len(heading) >= max(_NARROWEST, longest / _MOST_LINES)
    echo(
        heading + titles[-1]
        if len(heading + titles[-1]) <= width
        else f"{heading.rstrip()}\n     {titles[-1]}"
    )
    above = shown[0].method if len({entry.method for entry in front.entries}) == 1 else ""
    for entry in shown:
        if above != entry.method:
            echo(entry.method)
        above = entry.method
        figures = [entry.controller, str(entry.complexity), format_penalty(entry.penalty_model)]
        if entry.penalty_system is not None and entry.failures_system is not None:
            figures += [format_penalty(entry.penalty_system), percent(entry.failures_system)]
        if known:
            figures.append(_phase(entry))
        _print_row(_figures(figures), _rules(entry), beside, picked=entry is front.entries[front.pick])
    if left := len(front.entries) - len(shown):
        echo(f"     and {counted(left, 'controller')} without the margins: clearloop show … --all")


def _phase(entry: "Entry") -> str:
    """Return the phase margin in short: `-` if it is unknown, `any` if every phase is borne."""
    if entry.phase_margin is None:
        return "-"
    return f"{entry.phase_margin:.0f}°" if entry.phase_margin <= _ANY_PHASE else "any"


def _figures(cells: list[str]) -> str:
    widths = [len(cell) for cell in _WIDEST]
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=False)) + "  "


def _rules(entry: "Entry") -> list[str]:
    """Return the rules of a controller, or the formulas of its actions; most have one."""
    return shorten_numbers(entry.formula).split("; ")


def _print_row(figures: str, rules: list[str], beside: bool, *, picked: bool) -> None:
    """Print figures, and what a controller says beside or below them."""
    indent = " " * (len(figures) if beside else 5)
    mark = "  <-\0pick" if picked else ""
    *rest, last = rules
    room = shutil.get_terminal_size().columns - len(indent)
    lines = [line for rule in (*rest, last + mark * beside) for line in wrapped(rule, room, "  ")]
    echo(figures + lines.pop(0) if beside else figures.rstrip() + mark.replace("\0", " "))
    for line in lines:
        echo(indent + line)


def _title(actions: dict[str, Any]) -> str:
    """Return a title such as `controller (force in N)`."""
    if len(actions) > 1:
        return "controller"
    ((name, action),) = actions.items()
    return f"controller ({name} in {action['unit']})" if action.get("unit") else f"controller ({name})"


# The table of a bench.


def print_bench(run: "RunDirectory", as_json: bool) -> None:
    """Print the table of a finished bench, for people or as JSON."""
    from clearloop.bench.table import Row
    from clearloop.published import published_for
    from clearloop.runs.directory import read_table

    if run.describe()["status"] != "finished":
        raise ClearloopError(
            f"{run.path}: has no table yet: the bench is not finished; continue it with --resume"
        )
    rows = read_table(run.path / "table.csv", Row)
    if as_json:
        print_json({"run": str(run.path), "table": [vars(row) for row in rows]})
        return
    in_paper = bool(published_for(run.task()))
    for track in dict.fromkeys(row.track for row in rows):
        echo(f"Track {track}: means ± standard errors over experiments\n")
        _print_track([row for row in rows if row.track == track], in_paper)
        echo()
    failed = sum(row.penalty_model is None for row in rows)
    if failed:
        echo(f"Failed     {counted(failed, 'experiment')}; table.md says why")
    echo(f"Table      {run.path / 'table.md'}: also which method is better, and how certain that is")


def _print_track(rows: "Sequence[Row]", in_paper: bool) -> None:
    # A line for each method, with the figures that the paper gives for its own starts.
    from clearloop.bench.table import Mean, columns

    lines, known = [], columns(row.method for row in rows)
    for method in dict.fromkeys(row.method for row in rows):
        mine = [row for row in rows if row.method == method]
        model, system = (Mean.of([getattr(r, f"penalty_{on}") for r in mine]) for on in ("model", "system"))
        done = sum(row.penalty_model is not None for row in mine)
        failures = [row.failures_system for row in mine if row.failures_system is not None]
        published = (known[method].model, known[method].system)
        paper = [figure.partition(" ")[0] for figure in published] if in_paper else []
        figures = [str(model), *paper[:1], str(system), *paper[1:]]
        lines.append([method, *figures, percent(mean(failures)) if failures else "", str(done)])
    paper_titles = ["paper"] if in_paper else []
    titles = ["method", "model", *paper_titles, "plant", *paper_titles, "failures", "n"]
    print_table(titles, lines, right=range(1, len(titles)))


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
            help="For a controller: the task whose limits and units are used if the file has none; the run's "
            "task if not given.",
            metavar="TASK",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List controllers without the margins that were asked for, too.")
    ] = False,
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
            print_json(front_document(directory)) if as_json else print_front(directory, every=every)
    else:
        _show_controller(what, task, run, as_json)


def _show_controller(name: str, task: str | None, run: Path | None, as_json: bool) -> None:
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
