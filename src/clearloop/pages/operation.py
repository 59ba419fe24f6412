"""The sections of a card about operation: what is below the usual, a course over time, and the guard."""

from collections.abc import Iterator

from clearloop.controllers.views import TIMES
from clearloop.diagnosis import LoggedMargins, Margin
from clearloop.exports import lower
from clearloop.exports.guard import HOLD_STEPS
from clearloop.exports.safety import safe_actions
from clearloop.figures.trajectories import draw_trajectories
from clearloop.numbers import number, quantity
from clearloop.pages.report import telling_run
from clearloop.pages.sections import Section, Subject, as_svg, table
from clearloop.task.tables import Check, Robust

_USUAL = Robust()
_PANELS = 4  # states in the figure of a course
_WIDTH = 3.4  # inches of that figure, which stands in one of two columns


def cautions(subject: Subject) -> list[Section]:
    """Return the section that warns of margins below the usual, if there are any."""
    found: list[str] = []
    places = (
        (subject.logged_margins, "By the linear model of the log"),
        (subject.margins, f"On the {subject.diagnosis.place} at rest"),
    )
    for known, where in places:
        if known is not None and known.margins is not None:
            if not known.margins.stable:
                found.append(f"{where}: unstable for small deviations.")
            found += [f"{where}: {said}." for said in _narrow(known, subject.task.dt)]
    return [Section("Warning: margins below the usual", tuple(found))] if found else []


def _narrow(known: LoggedMargins, dt: float) -> Iterator[str]:
    """Yield the margins that are known and below the usual."""
    assert known.margins is not None  # noqa: S101 - the caller looked
    several = len(known.margins.actions) > 1
    for margin in known.margins.actions:
        of = f" of {margin.action}" if several else ""
        for name, said, usual in _compared(margin, dt):
            if (margin.action, name) not in known.unknown:
                yield f"{said}{of}; usual is {usual}"


def _compared(margin: Margin, dt: float) -> Iterator[tuple[str, str, str]]:
    """Yield each margin below the usual: its name, what it is, and what is usual."""
    up, down, late, phase = margin.gain_up, margin.gain_down, margin.delay, margin.phase
    least = _USUAL.gain_margin
    if up is not None and up < least:
        yield "gain_up", f"gain margin {TIMES} {number(up)} up", f"{TIMES} {least:g} or more"
    if down is not None and down > 1 / least:
        yield "gain_down", f"gain margin {TIMES} {number(down)} down", f"{TIMES} {1 / least:g} or less"
    if phase is not None and phase < _USUAL.phase:
        yield "phase", f"phase margin {number(phase)}°", f"{_USUAL.phase:g}° or more"
    if late is not None and late < _USUAL.delay * dt:
        yield "delay", f"delay margin {late / dt:.1f} steps", f"{_USUAL.delay:g} steps or more"


def course(subject: Subject) -> Section:
    """Return the section with the states and actions of one run over time."""
    controller, task = subject.controller, subject.task
    trajectory, where = telling_run(subject.diagnosis.controller, task, subject.batch, subject.surrogate)
    read = {variable.name for _, variable in controller.variables()}
    ranked = sorted(task.state_names, key=lambda name: (name not in task.setpoints, name not in read))
    shown = [name for name in task.state_names if name in ranked[:_PANELS]]
    figure = draw_trajectories({subject.name: trajectory}, names=(*shown, *task.action_names), width=_WIDTH)
    left = len(task.states) - len(shown)
    caption = f"One run {where}; dashed: the setpoint, dotted: limits."
    return Section(
        "A course over time",
        figure=as_svg(figure),
        caption=caption + (f" {left} more states are not drawn." if left else ""),
    )


def guards(subject: Subject) -> Section:
    """Return the section on what the guard of an exported block checks, and what it gives instead."""
    controller, task = subject.controller, subject.task
    inputs = [one.variable for one in lower(controller).inputs if one.default is None]
    rows = []
    for variable in inputs:
        unit = task.states[variable.name].unit if variable.name in task.states else ""
        rows.append([str(variable), *_checks(controller.check_of(variable), unit)])
    safe = safe_actions(controller)
    lines = [
        f"{name}: the safe value is {quantity(safe[name] + 0.0, task.actions[name].unit)}, "
        + ("as task or controller say." if name in controller.safe else "the action at rest; none is given.")
        for name in controller.actions
    ]
    bare = [str(one) for one in inputs if one.name not in controller.checks]
    notes = [
        "Every input is also checked for NaN, infinity and its flag. "
        f"The last action is held for {HOLD_STEPS} steps, then the safe value is given."
    ]
    if bare:
        notes.append(f"A wrong but finite value of {', '.join(bare)} is not noticed: no limits are given.")
    return Section(
        "Guards and safe values",
        lines=tuple(lines),
        table=table(
            ["", "range", "fastest change", "longest standstill"],
            rows,
            numbers=[1, 2, 3],
            widths=["1fr", "auto", "auto", "auto"],
        ),
        notes=tuple(notes),
    )


def _checks(check: Check, unit: str) -> list[str]:
    span = " … ".join(number(end) for end in check.range) if check.range else ""
    return [
        f"{span} {unit}".strip() if span else "—",
        f"{number(check.gradient)} {f'{unit}/s' if unit else '1/s'}" if check.gradient else "—",
        quantity(check.frozen, "s") if check.frozen else "—",
    ]
