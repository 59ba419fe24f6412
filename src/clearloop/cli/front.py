"""The front of a run, for people and for programs."""

import math
import re
import shlex
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from clearloop.cli.terminal import say, wrapped
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.runs import Entry, Front, RunDirectory
    from clearloop.runs.planned import Beside

DIGITS = 3  # of numbers in formulas on the screen; the files have all of them
NARROWEST = 24  # columns for a formula beside its figures


def read_front(run: "RunDirectory") -> "tuple[Front, dict[str, Any]]":
    """Of a finished run, with what `run.json` says of it."""
    from clearloop.runs import Front

    description = run.describe()
    asked = description["asked"]
    if "methods" not in asked:
        raise ClearloopError(
            f"{run.path}: a run of 'clearloop {asked.get('command')}', which has no front to show"
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
    front, description = read_front(run)
    asked = description["asked"]
    return {
        "run": str(run.path),
        "task": description["task"]["name"],
        **{name: asked[name] for name in ("methods", "budget", "track", "seed")},
        "simplest": front.entries[front.simplest].controller,
        "best": front.entries[front.best].controller,
        "pick": description["pick"],
        "front": [asdict(entry) for entry in front.entries],
        "published": [asdict(known) for known in front.published],
    }


def print_front(run: "RunDirectory") -> None:
    front, description = read_front(run)
    say(_headline(front), indent="")
    typer.echo()
    _print_table(front, description["task"]["actions"])
    typer.echo()
    known = [f"{row.title} {format_penalty(row.penalty_system)}" for row in front.published if row.in_paper]
    if known:
        say(f"Published  {', '.join(known)} on the plant", indent=" " * 11)
    pick = description["pick"]
    say(f"Pick       {pick['controller']}, {pick['reason']}", indent=" " * 11)
    if front.entries[front.pick].penalty_system is not None:
        say(f"Promise    {_kept(front)}", indent=" " * 11)
    for i in front.planners:
        say(f"Planner    {_planned(front, i)}", indent=" " * 11)
    typer.echo(f"In words   clearloop show {run.path / 'controllers' / pick['controller']}.json")


def _headline(front: "Front") -> str:
    """How the best compares with the simplest, and with what others have published."""
    best, simplest = front.entries[front.best], front.entries[front.simplest]
    cost = _cost(best)
    costs = "costs" if best.penalty_system is not None else "promises"
    where = " on the plant" if best.penalty_system is not None else ""
    said = f"The best controller, {best.controller}, {costs} {format_penalty(cost)}{where}"
    others = []
    if simplest != best:
        others.append(f"{_compared(cost, _cost(simplest))} the simplest")
    rivals = [known for known in front.published if known.in_paper]
    if rivals and front.best not in front.planners:
        rival = min(rivals, key=lambda known: known.penalty_system)
        others.append(f"{_compared(cost, rival.penalty_system)} the best published, the {rival.title}")
    return f"{said}: {' and '.join(others)}." if others else f"{said}."


def _planned(front: "Front", planner: int) -> str:
    """What a planner costs, and the best of the others from the same starts."""
    rows = {row.controller: row for row in front.planned}
    own, best = rows[front.entries[planner].controller], front.entries[front.best].controller
    titles = {} if rows[best].planner else {best: best}
    titles |= {known.controller: known.title for known in front.published if known.in_paper}
    others = [f"{title} {format_penalty(_cost(rows[name]))}" for name, title in titles.items()]
    return (
        f"{own.controller} plans anew at every step; its figures are from the first {own.starts} starts"
        + (f", where it stands beside {', '.join(others)}" if others else "")
    )


def _kept(front: "Front") -> str:
    """How far the plant is from what the model promised."""
    pick = front.entries[front.pick]
    pairs = [(e.penalty_model, e.penalty_system) for e in front.entries if e.penalty_system is not None]
    promised, cost = format_penalty(pick.penalty_model), format_penalty(_cost(pick))
    said = f"the pick promises {promised} and costs {cost} on the plant"
    if not all(promised > 0 for promised, _ in pairs):
        return said
    apart = max(abs(cost / promised - 1) for promised, cost in pairs)
    more = _cost(pick) / pick.penalty_model - 1
    return (
        f"{said}, {abs(more):.1%} {'more' if more >= 0 else 'less'};"
        f" over the front, plant and promise are at most {apart:.1%} apart"
    ).replace("%", " %")


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


def rounded(formula: str) -> str:
    """With numbers that a person can take in."""
    return re.sub(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?", lambda match: _short(float(match[0])), formula)


def _short(value: float) -> str:
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{DIGITS}g}"
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _cost(entry: "Entry | Beside") -> float:
    """On the plant, where there is one."""
    return entry.penalty_model if entry.penalty_system is None else entry.penalty_system


def format_penalty(value: float) -> str:
    return f"{value:.2f}" if 0.01 <= abs(value) < 1e5 or value == 0 else f"{value:.3g}"


def _compared(cost: float, other: float) -> str:
    """`12 % less than`; in absolute terms where shares mean nothing."""
    if cost > 0 and other > 0:
        change = cost / other - 1
        size = f"{100 * abs(change):.{0 if abs(change) >= 0.1 else 1}f} %"
    else:
        change, size = cost - other, format_penalty(abs(cost - other))
    return f"{size} {'less' if change <= 0 else 'more'} than"
