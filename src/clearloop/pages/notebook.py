"""The objects of the Python interface as HTML, as a notebook shows them: small, without scripts or styles of
its own, and readable on a dark background.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from uuid import uuid4

import numpy as np
from markupsafe import Markup

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.diagnosis import Diagnosis
from clearloop.expression import to_text
from clearloop.figures.style import as_image
from clearloop.methods import Result
from clearloop.numbers import percent, shorten_numbers
from clearloop.pages.formulas import typeset
from clearloop.surrogate import Surrogate
from clearloop.task import Task

_CELL = "text-align:left;padding:.15em .8em .15em 0;vertical-align:top"


@singledispatch
def as_html(shown: object) -> Markup:
    """Return an object of the Python interface as HTML. All texts from files are escaped."""
    return Markup("<pre>{}</pre>").format(repr(shown))


@as_html.register
def _task(task: Task) -> Markup:
    aims = {name: aim if isinstance(aim, str) else f"{aim:g}" for name, aim in task.setpoints.items()}
    states = [
        (name, state.unit, aims.get(name, ""), state.formula or ("external" if state.external else ""))
        for name, state in task.states.items()
    ]
    actions = [
        (name, action.unit, f"{action.limits[0]:g} … {action.limits[1]:g}")
        for name, action in task.actions.items()
    ]
    reward = task.reward_expression
    return _block(
        f"Task {task.name}",
        f"a step every {task.dt:g} s, {task.horizon} steps ahead, discount {task.discount:g}, "
        f"{'a' if task.plant else 'no'} plant to test on",
        _table(("state", "unit", "setpoint", "computed"), states),
        _table(("action", "unit", "limits"), actions),
        Markup("<p>Reward <code>{}</code></p>").format(
            f"learned from column {task.columns.reward}" if reward is None else to_text(reward)
        ),
    )


@as_html.register
def _batch(batch: Batch) -> Markup:
    rows = [
        (name, f"{values.min():.4g}", f"{values.mean():.4g}", f"{values.max():.4g}")
        for names, table in ((batch.columns.states, batch.states), (batch.columns.actions, batch.actions))
        for name, values in ((name, _known(table[:, k])) for k, name in enumerate(names))
    ]
    return _block("Batch", repr(batch), _table(("column", "least", "mean", "most"), rows))


def _known(column: Floats) -> Floats:
    kept = column[np.isfinite(column)]
    return kept if kept.size else np.full(1, np.nan)


@as_html.register
def _surrogate(surrogate: Surrogate) -> Markup:
    said = surrogate.repetition
    return _block("Surrogate", repr(surrogate), Markup("<p>{}</p>").format(repr(said)) if said else Markup())


@as_html.register
def _controller(controller: Controller) -> Markup:
    return _block(
        controller.name or f"Controller ({controller.kind})",
        f"complexity {controller.complexity}",
        typeset(controller),
        _list(map(shorten_numbers, (*controller.limit_words(), *controller.setpoint_words()))),
    )


@as_html.register
def _result(result: Result) -> Markup:
    rows = []
    for number, point in enumerate(result.points, 1):
        low_high = "" if point.interval is None else f" ({point.interval[0]:.3g} to {point.interval[1]:.3g})"
        tested = (
            ("", "")
            if point.system is None
            else (f"{point.system.penalty:.3g}", percent(point.system.failures))
        )
        rows.append(
            (
                f"{number:03d}",
                str(point.controller.complexity),
                f"{point.model.penalty:.3g}{low_high}",
                *tested,
                typeset(point.controller),
            )
        )
    header = ("no.", "complexity", "promised", "on plant", "failures", "controller")
    return _block(
        f"Front of {result.method}",
        f"{len(rows)} controllers, {result.steps:,} model steps",
        as_image(result.plot(), "The penalties of the front over their complexity"),
        _table(header, rows),
    )


@as_html.register
def _diagnosis(diagnosis: Diagnosis) -> Markup:
    parts = [diagnosis.starts, diagnosis.linearisation, *diagnosis.steps]
    found = [part for part in (*parts, diagnosis.coverage, diagnosis.robustness) if part is not None]
    lines = [*map(repr, found), *(f"no {what}: {why}" for what, why in diagnosis.left_out.items())]
    return _block(
        f"Diagnosis on the {diagnosis.place}",
        diagnosis.task.name,
        typeset(diagnosis.controller),
        _list(lines),
    )


def _block(title: str, said: str, *parts: Markup) -> Markup:
    head = Markup("<div><strong>{}</strong><br><small>{}</small></div>").format(title, said)
    return Markup("<div>{}{}</div>").format(head, Markup("").join(parts))


def _table(header: Sequence[str], rows: Iterable[Sequence[str | Markup]]) -> Markup:
    cell = Markup('<td style="{}">{}</td>')
    lines = [Markup("").join(cell.format(_CELL, value) for value in row) for row in rows]
    titles = Markup("").join(Markup('<th style="{}">{}</th>').format(_CELL, title) for title in header)
    body = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup('<table style="border-collapse:collapse;margin:.5em 0"><tr>{}</tr>{}</table>').format(
        titles, body
    )


def _list(lines: Iterable[str]) -> Markup:
    item = Markup('<li style="white-space:pre-line">{}</li>')
    items = Markup("").join(map(item.format, lines))
    return Markup("<ul>{}</ul>").format(items) if items else Markup()


def progress_bar(title: str) -> Callable[[float, str], None]:
    """Show a progress bar below the running cell of a notebook.

    Args:
        title: What is under way.

    Returns:
        A function to call with the share that is done, from 0 to 1, and what to say beside the bar.
    """
    from IPython.display import HTML, display

    name = uuid4().hex
    shown = Markup('<progress max="1" value="{}" style="width:20em"></progress> {} {}')
    display(HTML(shown.format(0, title, "")), display_id=name)  # type: ignore[no-untyped-call]

    def update(share: float, note: str) -> None:
        bar = HTML(shown.format(f"{share:.3f}", title, note))  # type: ignore[no-untyped-call]
        display(bar, display_id=name, update=True)  # type: ignore[no-untyped-call]

    return update
