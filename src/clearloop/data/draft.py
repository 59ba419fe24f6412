"""A plan as a task file with comments, made to be read and edited."""

import json
from collections.abc import Iterator
from pathlib import Path

from clearloop.data.plan import ActionPlan, Plan, StatePlan
from clearloop.data.resampling import REGULAR, USUAL_GAP
from clearloop.data.timing import sensible

RATE = 0.1  # weight of the action's changes beside an error of one scale
SLOW = 100  # rows in which nothing much changes, from which on a larger dt is worth a thought


def draft(plan: Plan, name: str, log: str) -> str:
    """TOML. `log` is what the comments call the file."""
    lines = [
        f"# Drafted by `clearloop init` from {_comment(Path(log).name)}. Read it, correct it, then:",
        f"#   clearloop data check {_comment(log)} --task {name}.toml",
        f"#   clearloop learn {name}.toml --data {_comment(log)}",
        f"name = {_text(name)}",
        f"dt = {_number(plan.dt)}  # s between two rows, and between two actions{_seen(plan)}",
        *_advice(plan),
        f"horizon = {plan.horizon}  # steps that are looked ahead: three times {plan.memory:.3g} s, the time",
        "# after which the errors no longer resemble themselves; at least 50, at most 300",
        f"discount = {_number(plan.discount)}  # at the horizon a reward still counts 5 %",
        f"history = {plan.history}  # rows that a controller sees; {_why_history(plan)}",
        "",
        "[states]  # what is measured; a bare number in setpoint is a constant, text a column of the log",
        *(line for state in plan.states for line in _state(state)),
        "",
        "[actions]  # limits are kept by every controller",
        *map(_action, plan.actions),
        "",
        *_reward(plan),
        "",
        *_data(plan),
        *_sampling(plan),
    ]
    return "\n".join(lines) + "\n"


def _seen(plan: Plan) -> str:
    if plan.spacing is None:
        return ""
    least, usual, most = plan.spacing
    if max(plan.dt - least, most - plan.dt) <= REGULAR * plan.dt:
        return ""
    return f"; seen: {least:.3g} to {most:.3g} s, usually {usual:.4g} s"


def _why_history(plan: Plan) -> str:
    return f"in the log, {plan.remembers}" if plan.remembers else "from 2 on also the last action"


def _advice(plan: Plan) -> Iterator[str]:
    if plan.memory > SLOW * plan.dt:
        slower = sensible(plan.memory / 50, 0.3)
        yield f"# The log may be faster than the plant: dt = {_number(slower)} would look as far ahead in"
        yield "# fewer steps, if the controller may act that seldom; [sampling] makes such rows of the log."


def _state(state: StatePlan) -> Iterator[str]:
    unit = state.column.header.unit
    parts = [f"unit = {_text(unit)}"]
    if state.setpoint is not None:
        value = _text(state.setpoint) if isinstance(state.setpoint, str) else _number(state.setpoint)
        parts.append(f"setpoint = {value}")
    if state.external:
        parts.append("external = true")
    what = f"# seen: {state.column.range}" + "; seen by the controller, not predicted" * state.external
    yield f"{_key(state.name)} = {{ {', '.join(parts)} }}  {what}"
    if state.filter is not None:
        keep, rest = _number(state.filter), _number(round(1 - state.filter, 3))
        rate = f"({state.name} - {state.name}[t-1])/dt"
        formula = f"{keep}*{state.name}_dot[t-1] + {rest}*{rate}" if state.filter else rate
        speed = f"unit = {_text(f'{unit}/s' if unit else '')}, formula = {_text(formula)}"
        yield f"# its velocity: the difference, through a first-order filter that keeps {keep} a step"
        yield f"{_key(state.name + '_dot')} = {{ {speed} }}"
    if state.most is not None:
        most = _number(state.most)
        formula = f"clip({state.name}_sum[t-1] + dt*{state.name}.error, -{most}, {most})"
        total = f"unit = {_text(f'{unit} s' if unit else 's')}, formula = {_text(formula)}"
        yield "# the sum of its errors, for an integral part; limited, lest it winds up"
        yield f"{_key(state.name + '_sum')} = {{ {total} }}"


def _action(action: ActionPlan) -> str:
    low, high = map(_number, action.limits)
    parts = f"unit = {_text(action.column.header.unit)}, limits = [{low}, {high}]"
    seen = f"seen: {action.column.range}"
    if action.step is not None:
        parts += f", step = {_number(action.step)}"
        only = f"{low} and {high}" if action.column.distinct == 2 else "whole numbers"
        seen += f", only {only}; without step it may take any value"
    return f"{_key(action.name)} = {{ {parts} }}  # {seen}"


def _aims(plan: Plan) -> list[StatePlan]:
    return [state for state in plan.states if state.tolerance is not None]


def _reward(plan: Plan) -> Iterator[str]:
    yield "[reward]"
    if plan.reward is not None:
        yield f"column = {_text(plan.reward)}  # it is learned from there"
        return
    yield "terms = [  # costs, each in parts of a whole; see docs/tasks.md for other kinds"
    for state in _aims(plan):
        track = f"track = {_text(state.name)}, tolerance = {_number(state.tolerance or 0.0)}"
        yield f"  {{ {track}, scale = {_scale(state)} }},  # an error within the tolerance costs nothing"
    for action in plan.actions:
        yield f"  {{ rate = {_text(action.name)}, weight = {RATE} }},  # changes, in parts of the limits"
    yield "]"


def _scale(state: StatePlan) -> str:
    """The error that counts 1: a fifth of what was seen."""
    return _number(sensible((state.column.high - state.column.low) / 5, 0.3))


def _data(plan: Plan) -> Iterator[str]:
    renamed = {state.name: state.column.name for state in plan.states}
    renamed |= {action.name: action.column.name for action in plan.actions}
    if plan.time is not None:
        renamed["time"] = plan.time.name
    for role in ("episode", "terminal"):
        if (column := getattr(plan, role)) is not None:
            renamed[role] = column
    renamed = {name: column for name, column in renamed.items() if name != column}
    if renamed:
        yield "[data]  # the log's own names"
        yield from (f"{_key(name)} = {_text(column)}" for name, column in renamed.items())
        yield ""


def _sampling(plan: Plan) -> Iterator[str]:
    if plan.time is None:
        return
    yield "[sampling]  # how the log becomes rows that are dt apart"
    if plan.time.kind == "number":
        yield f"time_unit = {_text(plan.unit)}"
    yield 'resample = "linear"  # where rows are not dt apart: states by linear interpolation, the rest held'
    yield f"gap = {_number(USUAL_GAP * plan.dt)}  # s without a row, after which a new episode begins"


def _comment(text: str) -> str:
    """On one line, whatever is in it."""
    return text if text.isprintable() else _text(text)


def _key(name: str) -> str:
    return name if name.isascii() else _text(name)


def _text(text: str) -> str:
    """A TOML string: JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    """As short as it is exact, and a float in TOML."""
    short = float(f"{value:.12g}")
    return repr(short if abs(short - value) <= 1e-15 * abs(value) else value)
