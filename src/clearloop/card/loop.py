"""The loop for small deviations: gains where it rests, beside LQR's; eigenvalues and margins."""

import numpy as np

from clearloop.card.phrases import MINUS, TIMES, number, quantity
from clearloop.card.sections import Section, table
from clearloop.card.subject import Subject
from clearloop.data.cells import Floats
from clearloop.diagnosis import Linearisation, Margins, Mode
from clearloop.errors import ClearloopError
from clearloop.methods.lqr import Design

MOST_MODES = 4  # that are listed, the slowest first
NONE = "—"


def gains(subject: Subject) -> Section:
    linear, task = subject.diagnosis.linearisation, subject.task
    title = "Gains at the operating point"
    if linear is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out.get('linearisation', '')}.",))
    own = linear.law
    other = subject.lqr.law if isinstance(subject.lqr, Design) else None
    memory = any(law is not None and law[:, 1:].any() for law in (own, other))
    columns = [_columns(law, memory, len(task.states)) for law in (own, other) if law is not None]
    names = ["this", *(["LQR"] if other is not None else [])]
    kinds = ["now", "held"] if memory else [""]
    header = ["", *(f"{name} {kind}".rstrip() for name in names for kind in kinds)]
    rows = []
    for a, action in enumerate(task.action_names):
        for j, state in enumerate(task.state_names):
            per = f"{_unit(task.actions[action].unit)} per {_unit(task.states[state].unit)}"
            of = f"{action} by {state}" if len(task.actions) > 1 else state
            values = [number(column[a, j]) for law in columns for column in law]
            rows.append([f"{of} ({per})", *values])
    notes = []
    if memory:
        notes.append("Now: of the present value alone. Held: of a deviation that has lasted.")
    if isinstance(subject.lqr, ClearloopError):
        notes.append(f"No LQR to compare with: {subject.lqr}.")
    return Section(
        title,
        lines=(_place(linear),),
        table=table(
            header, rows, numbers=range(1, len(header)), widths=["1fr"] + ["auto"] * (len(header) - 1)
        ),
        notes=tuple(notes),
    )


def _unit(unit: str) -> str:
    return unit or "1"


def _columns(law: Floats, memory: bool, states: int) -> list[Floats]:
    now, held = law[:, 0, :states], law.sum(axis=1)[:, :states]
    return [now, held] if memory else [now]


def _place(linear: Linearisation) -> str:
    task = linear.task
    where = [
        f"{name} = {quantity(float(value) + 0.0, task.states[name].unit)}"
        for name, value in zip(task.state_names, _clean(linear.point), strict=True)
    ]
    acts = [
        f"{name} = {quantity(float(value) + 0.0, task.actions[name].unit)}"
        for name, value in zip(task.action_names, _clean(linear.action), strict=True)
    ]
    said = "It rests at" if linear.at_rest else "It does not rest at its setpoint. Gains are those at"
    return f"{said} {', '.join(where)}, with {', '.join(acts)}."


def _clean(values: Floats) -> Floats:
    """Without what rounding left of zero."""
    return np.where(np.abs(values) < 1e-9, 0.0, values)


def small_deviations(subject: Subject) -> Section:
    title, linear = "Small deviations", subject.diagnosis.linearisation
    why = f"it {linear!r}" if linear else subject.diagnosis.left_out.get("linearisation", "")
    on = "plant" if subject.diagnosis.on == "system" else "model"
    found = {
        "linear model of the log": subject.margins(logged=True),
        f"{on} where it rests": subject.margins(logged=False),
    }
    known = {name: margins for name, margins in found.items() if margins is not None}
    notes = []
    if not known:
        return Section(title, lines=(f"No eigenvalues and margins: {why}.",))
    if isinstance(subject.model, ClearloopError):
        notes.append(f"No linear model of the log: {subject.model}.")
    columns = [_values(margins, subject.task.dt) for margins in known.values()]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [[label, *(column.get(label, NONE) for column in columns)] for label in labels]
    notes.append("Limits of the actions are not in it.")
    return Section(
        title,
        table=table(
            ["", *known], rows, numbers=range(1, 1 + len(known)), widths=["1fr"] + ["auto"] * len(known)
        ),
        notes=tuple(notes),
    )


def _values(margins: Margins, dt: float) -> dict[str, str]:
    shown = {"": "stable" if margins.stable else "UNSTABLE"}
    for place, mode in enumerate(margins.modes[:MOST_MODES], 1):
        shown[f"eigenvalue {place}"] = _mode(mode)
    slowest = margins.modes[0].time_constant
    if slowest:
        shown["time constant"] = quantity(slowest, "s") if slowest > 0 else f"grows in {-slowest:.3g} s"
    damped = [mode.damping for mode in margins.modes if mode.damping is not None]
    shown["least damping"] = number(min(damped)) if damped else "nothing swings"
    for margin in margins.actions:
        of = f", {margin.action}" if len(margins.actions) > 1 else ""
        up, down = margin.gain_up, margin.gain_down
        shown[f"gain margin, up{of}"] = f"{TIMES} {number(up)}" if up is not None else "any"
        shown[f"gain margin, down{of}"] = f"{TIMES} {number(down)}" if down is not None else "any"
        shown[f"phase margin{of}"] = f"{number(margin.phase)}°" if margin.phase is not None else "any"
        late = margin.delay
        shown[f"delay margin{of}"] = "any" if late is None else f"{number(late, 3)} s ({late / dt:.1f} steps)"
    return shown


def _mode(mode: Mode) -> str:
    imaginary = f" ± {mode.value.imag:.4f}i" if abs(mode.value.imag) > 5e-5 else ""
    return f"{mode.value.real:.4f}{imaginary}".replace("-", MINUS)
