"""What a person says about a log, and what a task file for it is to hold."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from clearloop.arrays import Floats
from clearloop.data.cells import identifier
from clearloop.data.findings import Report
from clearloop.data.resampling import REGULAR, USUAL_GAP
from clearloop.data.survey import Column, Guess, Role, intervals, memory, outward, sensible, time_unit
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.numbers import significant
from clearloop.task.tables import SECONDS


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a person says; columns by their own name, or by the one that the task gives them."""

    states: Sequence[str] = ()
    actions: Sequence[str] = ()
    external: Sequence[str] = ()
    setpoints: Mapping[str, str] = field(default_factory=dict)
    """Of states: a column, or a number."""
    velocities: Mapping[str, float | None] = field(default_factory=dict)
    """Of states: seconds of the filter, None for the usual ones."""
    integrals: Sequence[str] = ()
    """States whose errors are to be added up."""
    tolerances: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    time: str | None = None
    episode: str | None = None
    dt: float | None = None
    """Seconds."""


@dataclass(frozen=True, kw_only=True)
class StatePlan:
    name: str
    column: Column
    setpoint: float | str | None = None
    """A number, or a column."""
    tolerance: float | None = None
    """Of the goal; none: no goal for this state."""
    external: bool = False
    filter: float | None = None
    """Share of the last velocity that stays from step to step; none: no velocity is derived."""
    most: float | None = None
    """Of the sum of its errors, in its unit times seconds; none: they are not added up."""


@dataclass(frozen=True, kw_only=True)
class ActionPlan:
    name: str
    column: Column
    limits: tuple[float, float]
    step: float | None = None
    """Between the values that it takes; none: it takes any."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    states: tuple[StatePlan, ...]
    actions: tuple[ActionPlan, ...]
    time: Column | None
    unit: str
    """Of the time column."""
    episode: str | None
    reward: str | None
    terminal: str | None
    dt: float
    spacing: tuple[float, float, float] | None
    """Seconds between rows: the least, the usual and the most."""
    memory: float
    """Seconds after which what is to be held is no longer like itself."""
    horizon: int
    discount: float
    history: int
    """Rows that a controller sees."""
    remembers: str = ""
    """Why so many, if more than usual."""

    def role(self, name: str, guessed: str) -> str:
        """Of a column; states and actions that were guessed and not taken are ignored."""
        roles = {state.column.name: "external" if state.external else "state" for state in self.states}
        roles |= {action.column.name: "action" for action in self.actions}
        if self.time is not None:
            roles[self.time.name] = "time"
        if self.episode is not None:
            roles[self.episode] = "episode"
        roles |= {state.setpoint: "setpoint" for state in self.states if isinstance(state.setpoint, str)}
        taken = ("state", "action", "external", "time", "episode")
        return roles.get(name, "ignored" if guessed in taken else guessed)


# Columns by whatever people call them, and names for them that formulas can use.


def find(text: str, columns: Sequence[Column]) -> Column:
    """A column by its name, by its name without the unit, or by what a task would call it."""
    for spelling in (lambda c: c.name, lambda c: c.header.name, lambda c: identifier(c.name)):
        found = [column for column in columns if spelling(column).casefold() == text.strip().casefold()]
        if len(found) == 1:
            return found[0]
    names = [column.name for column in columns] + [identifier(column.name) for column in columns]
    raise ClearloopError(
        f"no column {quoted(text)}{did_you_mean(text, names) or ';'} {list_columns(columns)}"
    )


def list_columns(columns: Sequence[Column]) -> str:
    return "the columns are: " + ", ".join(quoted(column.name) for column in columns[:20])


def make_names(columns: Sequence[Column]) -> dict[str, str]:
    """Of each column, a name that formulas can use; all different."""
    names: dict[str, str] = {}
    for column in columns:
        name, number = identifier(column.name), 2
        while name in names.values():
            name, number = f"{identifier(column.name)}_{number}", number + 1
        if names.setdefault(column.name, name) != name:
            raise ClearloopError(f"column {quoted(column.name)} has two roles: name it once")
    return names


# From what a log looks like and what a person says about it to all that a task file needs.

_MOST_STEPS, FEWEST_STEPS = 300, 50  # of the horizon
_TOLERANCE = 0.02  # of a state's range, where nobody says
NEARLY_FULL = 90.0  # %
_LEFT = 0.05  # what a reward at the horizon still counts
SUMMED = 10  # steps of the largest error: what the sum of errors is limited to, lest it winds up
DEFAULT_FILTER = 2.0  # steps


def make_plan(guesses: Sequence[Guess], wishes: Wishes) -> Plan:
    columns = [guess.column for guess in guesses]

    def wanted(given: Sequence[str], role: Role) -> list[Column]:
        if given:
            return [find(text, columns) for text in given]
        return [guess.column for guess in guesses if guess.role == role and guess.column not in taken]

    def one(given: str | None, role: Role) -> Column | None:
        return next(iter(wanted([given] if given else [], role)), None)

    said = (*wishes.states, *wishes.actions, *wishes.external, *filter(None, (wishes.time, wishes.episode)))
    taken = [find(text, columns) for text in said]
    time, episode = one(wishes.time, "time"), one(wishes.episode, "episode")
    reward, terminal = one(None, "reward"), one(None, "terminal")
    actions, external = wanted(wishes.actions, "action"), wanted(wishes.external, "external")
    states = wanted(wishes.states, "state")
    if not actions:
        raise ClearloopError(
            f"cannot tell which column is the action: give --action COLUMN; {list_columns(columns)}"
        )
    if not states:
        what = "cannot tell which columns are states: give --state COLUMN"
        raise ClearloopError(f"{what}; {list_columns(columns)}")
    for column in (*states, *external, *actions):
        if column.kind != "number":
            raise ClearloopError(f"column {quoted(column.name)} holds {column.kind}, not numbers")
    names = make_names([*states, *external, *actions])
    unit = time_unit(time) if time else "s"
    spacing = _spacing(time, SECONDS[unit])
    dt = wishes.dt or (sensible(spacing[1]) if spacing else None)
    if dt is None:
        raise ClearloopError(
            "no column tells the time: give the seconds between two rows as --dt, or --time COLUMN"
        )
    planned = _states(states, external, names, guesses, wishes, dt)
    aims = [_error(state, columns) for state in planned if state.tolerance is not None]
    if not aims and reward is None:
        example = f"--setpoint {names[states[0].name]}=VALUE"
        raise ClearloopError(f"nothing says what is wanted: give {example}, or a log with a reward column")
    row = spacing[1] if spacing else dt
    seconds = memory(aims or [column.values for column in states]) * row
    horizon = int(sensible(min(max(3 * seconds / dt, FEWEST_STEPS), _MOST_STEPS), 0.1))
    return Plan(
        states=planned,
        actions=tuple(_action(column, names[column.name], wishes, actions) for column in actions),
        time=time,
        unit=unit,
        episode=episode.name if episode else None,
        reward=reward.name if reward and not aims else None,
        terminal=terminal.name if terminal else None,
        dt=dt,
        spacing=spacing,
        memory=seconds,
        horizon=horizon,
        discount=round(_LEFT ** (1 / horizon), 4),
        history=2 if aims else 1,
    )


def _spacing(time: Column | None, unit: float) -> tuple[float, float, float] | None:
    steps = intervals(time.values * (unit if time.kind == "number" else 1.0)) if time else np.empty(0)
    if not len(steps):
        return None
    return float(steps.min()), float(np.median(steps)), float(steps.max())


def _states(
    states: Sequence[Column],
    external: Sequence[Column],
    names: Mapping[str, str],
    guesses: Sequence[Guess],
    wishes: Wishes,
    dt: float,
) -> tuple[StatePlan, ...]:
    columns = [guess.column for guess in guesses]
    setpoints: dict[str, float | str] = {}
    for guess in guesses:
        if guess.role == "setpoint" and guess.of in states and guess.of is not None:
            column = guess.column
            setpoints[guess.of.name] = column.low if column.constant else column.name
    for state, text in wishes.setpoints.items():
        value = _number(text)
        setpoints[find(state, states).name] = find(text, columns).name if value is None else value
    tolerances = {find(state, states).name: value for state, value in wishes.tolerances.items()}
    for state in tolerances:
        if state not in setpoints:
            what = f"--goal: {names[state]} has no setpoint: give --setpoint {names[state]}=VALUE"
            raise ClearloopError(what)
    filters = {find(state, states).name: seconds for state, seconds in wishes.velocities.items()}
    summed = {find(state, states).name for state in wishes.integrals}
    for state in summed:
        if state not in setpoints:
            what = f"--integral: {names[state]} has no setpoint: give --setpoint {names[state]}=VALUE"
            raise ClearloopError(what)
    computed = {f"{names[state]}_dot": "--velocity" for state in filters}
    computed |= {f"{names[state]}_sum": "--integral" for state in summed}
    for name, option in computed.items():
        if name in names.values():
            raise ClearloopError(f"{option}: the log has {quoted(name)} already: leave {option} out")
    planned = []
    for column in states:
        aim = column.name in setpoints and (not tolerances or column.name in tolerances)
        usual = sensible(_TOLERANCE * (column.high - column.low), 0.3)
        planned.append(
            StatePlan(
                name=names[column.name],
                column=column,
                setpoint=setpoints.get(column.name),
                tolerance=tolerances.get(column.name, usual) if aim else None,
                filter=_filter(filters[column.name], dt) if column.name in filters else None,
                most=sensible(SUMMED * dt * (column.high - column.low), 0.3)
                if column.name in summed
                else None,
            )
        )
    planned += [StatePlan(name=names[column.name], column=column, external=True) for column in external]
    return tuple(planned)


def _error(state: StatePlan, columns: Sequence[Column]) -> Floats:
    """[rows], of the state's distance from its setpoint."""
    if not isinstance(state.setpoint, str):
        return state.column.values
    return state.column.values - find(state.setpoint, columns).values


def _filter(seconds: float | None, dt: float) -> float:
    """First order: what is left of the last value after one step."""
    seconds = DEFAULT_FILTER * dt if seconds is None else seconds
    return round(math.exp(-dt / seconds), 3) if seconds > 0 else 0.0


def _action(column: Column, name: str, wishes: Wishes, actions: Sequence[Column]) -> ActionPlan:
    given = {find(key, actions).name: limits for key, limits in wishes.limits.items()}
    if column.constant:
        raise ClearloopError(f"column {quoted(column.name)} never changes: nothing tells what it does")
    if column.name in given:
        limits = given[column.name]
    else:
        limits = outward(column.low, column.high) if column.distinct > 2 else (column.low, column.high)
        if column.header.unit == "%" and NEARLY_FULL <= column.high <= 100 and column.low >= 0:
            limits = (0.0, 100.0)
    return ActionPlan(name=name, column=column, limits=limits, step=_step(column, limits))


def _step(column: Column, limits: tuple[float, float]) -> float | None:
    """That the limits are a whole number of, counted from the lower one."""
    step, (low, high) = column.step, limits
    if step is None or (high - low) % step or (column.low - low) % step:
        return None
    return step


def remember(plan: Plan, report: Report) -> Plan:
    """With as much history as an examination of the log asks for."""
    asked = [finding for finding in report.findings if finding.code in ("delay", "short-history")]
    longest = max(asked, key=lambda finding: finding.numbers["history"], default=None)
    if longest is None or longest.numbers["history"] <= plan.history:
        return plan
    name = longest.numbers["name"]
    why = f"{name} acts late" if longest.code == "delay" else f"{name} depends on what was before"
    return replace(plan, history=longest.numbers["history"], remembers=why)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text) else None


# A plan as a task file with comments, made to be read and edited.

RATE = 0.1  # weight of the action's changes beside an error of one scale
_SLOW = 100  # rows in which nothing much changes, from which on a larger dt is worth a thought


def draft(plan: Plan, name: str, log: str) -> str:
    """TOML. `log` is what the comments call the file."""
    lines = [
        f"# Drafted by `clearloop init` from {_comment(Path(log).name)}. Read it, correct it, then:",
        f"#   clearloop data check {_comment(log)} --task {name}.toml",
        f"#   clearloop learn {name}.toml --data {_comment(log)}",
        f"name = {_text(name)}",
        f"dt = {_written(plan.dt)}  # s between two rows, and between two actions{_seen(plan)}",
        *_advice(plan),
        f"horizon = {plan.horizon}  # steps that are looked ahead: three times {plan.memory:.3g} s, the time",
        "# after which the errors no longer resemble themselves; at least 50, at most 300",
        f"discount = {_written(plan.discount)}  # at the horizon a reward still counts 5 %",
        f"history = {plan.history}  # rows that a controller sees; {_why_history(plan)}",
        "",
        "[states]  # what is measured; a bare number in setpoint is a constant, text a column of the log",
        *(line for state in plan.states for line in _state(state)),
        "",
        "[actions]  # limits are kept by every controller",
        *map(_action_line, plan.actions),
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
    if plan.memory > _SLOW * plan.dt:
        slower = sensible(plan.memory / 50, 0.3)
        yield f"# The log may be faster than the plant: dt = {_written(slower)} would look as far ahead in"
        yield "# fewer steps, if the controller may act that seldom; [sampling] makes such rows of the log."


def _state(state: StatePlan) -> Iterator[str]:
    unit = state.column.header.unit
    parts = [f"unit = {_text(unit)}"]
    if state.setpoint is not None:
        value = _text(state.setpoint) if isinstance(state.setpoint, str) else _written(state.setpoint)
        parts.append(f"setpoint = {value}")
    if state.external:
        parts.append("external = true")
    what = f"# seen: {state.column.range}" + "; seen by the controller, not predicted" * state.external
    yield f"{_key(state.name)} = {{ {', '.join(parts)} }}  {what}"
    if state.filter is not None:
        keep, rest = _written(state.filter), _written(round(1 - state.filter, 3))
        rate = f"({state.name} - {state.name}[t-1])/dt"
        formula = f"{keep}*{state.name}_dot[t-1] + {rest}*{rate}" if state.filter else rate
        speed = f"unit = {_text(f'{unit}/s' if unit else '')}, formula = {_text(formula)}"
        yield f"# its velocity: the difference, through a first-order filter that keeps {keep} a step"
        yield f"{_key(state.name + '_dot')} = {{ {speed} }}"
    if state.most is not None:
        most = _written(state.most)
        formula = f"clip({state.name}_sum[t-1] + dt*{state.name}.error, -{most}, {most})"
        total = f"unit = {_text(f'{unit} s' if unit else 's')}, formula = {_text(formula)}"
        yield "# the sum of its errors, for an integral part; limited, lest it winds up"
        yield f"{_key(state.name + '_sum')} = {{ {total} }}"


def _action_line(action: ActionPlan) -> str:
    low, high = map(_written, action.limits)
    parts = f"unit = {_text(action.column.header.unit)}, limits = [{low}, {high}]"
    seen = f"seen: {action.column.range}"
    if action.step is not None:
        parts += f", step = {_written(action.step)}"
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
        track = f"track = {_text(state.name)}, tolerance = {_written(state.tolerance or 0.0)}"
        yield f"  {{ {track}, scale = {_scale(state)} }},  # an error within the tolerance costs nothing"
    for action in plan.actions:
        yield f"  {{ rate = {_text(action.name)}, weight = {RATE} }},  # changes, in parts of the limits"
    yield "]"


def _scale(state: StatePlan) -> str:
    """The error that counts 1: a fifth of what was seen."""
    return _written(sensible((state.column.high - state.column.low) / 5, 0.3))


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
    yield f"gap = {_written(USUAL_GAP * plan.dt)}  # s without a row, after which a new episode begins"


def _comment(text: str) -> str:
    """On one line, whatever is in it."""
    return text if text.isprintable() else _text(text)


def _key(name: str) -> str:
    return name if name.isascii() else _text(name)


def _text(text: str) -> str:
    """A TOML string: JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _written(value: float) -> str:
    """As short as it is exact, and a float in TOML."""
    short = significant(value, 12)
    return repr(short if abs(short - value) <= 1e-15 * abs(value) else value)
