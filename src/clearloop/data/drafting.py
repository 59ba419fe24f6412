"""A draft of a task file for a log, from what the log shows and what a person says (`clearloop init`)."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from clearloop.arrays import Floats
from clearloop.data.findings import Report
from clearloop.data.resampling import REGULAR, USUAL_GAP
from clearloop.data.settling import Dynamics, fit_dynamics, settling_rows, wanders
from clearloop.data.survey import (
    Column,
    Guess,
    Role,
    find,
    intervals,
    list_columns,
    make_names,
    memory,
    outward,
    sensible,
    time_unit,
)
from clearloop.errors import ClearloopError, quoted
from clearloop.numbers import plain, significant
from clearloop.task.tables import SECONDS


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The statements of a person about a log. A column goes by its own name, or by the task's name for it."""

    states: Sequence[str] = ()
    """Columns that are states."""
    actions: Sequence[str] = ()
    """Columns that are actions."""
    external: Sequence[str] = ()
    """Columns that are external states."""
    setpoints: Mapping[str, str] = field(default_factory=dict)
    """The setpoint of a state: a column, a number, or - for none."""
    velocities: Mapping[str, float | None] = field(default_factory=dict)
    """States whose velocity is derived, with the time constant of its filter in seconds; None: as usual."""
    integrals: Sequence[str] | None = None
    """States whose errors are summed; None: those for which the log shows a need."""
    tolerances: Mapping[str, float] = field(default_factory=dict)
    """The error of a state that costs nothing."""
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The limits of an action."""
    time: str | None = None
    """The time column."""
    episode: str | None = None
    """The column that tells episodes apart."""
    dt: float | None = None
    """Seconds of a control interval."""


@dataclass(frozen=True, kw_only=True)
class StatePlan:
    """A state of the task to be drafted."""

    name: str
    column: Column
    setpoint: float | str | None = None
    """A number, or a column."""
    tolerance: float | None = None
    """The error that costs nothing; None if the reward does not depend on this state."""
    external: bool = False
    filter: float | None = None
    """The share of the last velocity that stays from step to step; None if no velocity is derived."""
    most: float | None = None
    """The limit of the sum of errors, in the state's unit times seconds; None if errors are not summed."""
    summed: str = "for an integral part"
    """Why errors are summed, for the comment."""


@dataclass(frozen=True, kw_only=True)
class ActionPlan:
    """An action of the task to be drafted."""

    name: str
    column: Column
    limits: tuple[float, float]
    rate: float
    """The weight of its changes in the reward."""
    step: float | None = None
    """The distance between the values that the action takes; None if it takes any value."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that the drafted task file holds."""

    states: tuple[StatePlan, ...]
    actions: tuple[ActionPlan, ...]
    time: Column | None
    unit: str
    """The unit of the time column."""
    episode: str | None
    reward: str | None
    terminal: str | None
    dt: float
    spacing: tuple[float, float, float] | None
    """Seconds between rows: the least, the usual and the most."""
    settling: float
    """Seconds that the plant, or its loop, needs to settle."""
    pace: str
    """How that was found, for the comment."""
    horizon: int
    discount: float
    history: int
    """Observations that a controller sees."""
    remembers: str = ""
    """The reason for a history that is longer than usual."""

    def role(self, name: str, guessed: str) -> str:
        """Return the role of a column; one that was `guessed` and not taken up is ignored."""
        roles = {state.column.name: "external" if state.external else "state" for state in self.states}
        roles |= {action.column.name: "action" for action in self.actions}
        if self.time is not None:
            roles[self.time.name] = "time"
        if self.episode is not None:
            roles[self.episode] = "episode"
        roles |= {state.setpoint: "setpoint" for state in self.states if isinstance(state.setpoint, str)}
        taken = ("state", "action", "external", "time", "episode")
        return roles.get(name, "ignored" if guessed in taken else guessed)


# The plan: from guesses and wishes to all that a task file needs.

_MOST_STEPS, FEWEST_STEPS = 500, 50  # of the horizon
_TOLERANCE = 0.02  # of a state's range, unless a person gives one
NEARLY_FULL = 90.0  # %
_LEFT = 0.05  # weight of a reward at the horizon
_ROOM = 1.5  # times the time in which the log's own loop settles
RATE, _MOST_RATE = 0.1, 100.0  # weight of the action's changes, compared with an error of one scale
_SHARE = 0.25  # of what errors cost in the log: so much its actions' changes cost
DEFAULT_FILTER = 2.0  # steps


def make_plan(guesses: Sequence[Guess], wishes: Wishes) -> Plan:
    """Plan a task file from the guessed roles of a log's columns; what a person says comes first.

    Raises:
        ClearloopError: The log and the wishes do not say enough, or contradict each other.
    """
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
    limited = [find(text, columns) for text in wishes.limits] if not wishes.actions else []
    taken += [column for column in limited if column not in taken]
    aimed = [text for text in wishes.setpoints.values() if text.strip() != "-" and _number(text) is None]
    taken += [column for column in (find(text, columns) for text in aimed) if column not in taken]
    actions, external = wanted(wishes.actions, "action") + limited, wanted(wishes.external, "external")
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
    aims = [state for state in planned if state.tolerance is not None]
    if not aims and reward is None:
        name = names[states[0].name]
        found = ", ".join(quoted(column.name) for column in actions)
        raise ClearloopError(
            f"no state has a setpoint, and taken as actions are {found}: give --setpoint {name}=COLUMN or "
            f"--setpoint {name}=NUMBER, and --action COLUMN if the action is another one"
        )
    row = spacing[1] if spacing else dt
    courses = [Course.of(state, actions, columns) for state in aims]
    seconds, pace = _pace(courses, [column.values for column in states], row)
    horizon = int(sensible(min(max(seconds / dt, FEWEST_STEPS), _MOST_STEPS), 0.1))
    span = horizon * dt
    integrals = {course.state.name: _integral(course, wishes, names, span) for course in courses}
    return Plan(
        states=tuple(integrals.get(state.name, state) for state in planned),
        actions=tuple(_action(column, names[column.name], wishes, actions, courses) for column in actions),
        time=time,
        unit=unit,
        episode=episode.name if episode else None,
        reward=reward.name if reward and not aims else None,
        terminal=terminal.name if terminal else None,
        dt=dt,
        spacing=spacing,
        settling=seconds,
        pace=pace,
        horizon=horizon,
        discount=round(_LEFT ** (1 / horizon), 4),
        history=2 if aims else 1,
    )


@dataclass(frozen=True, eq=False)
class Course:
    """What the log shows of a state that has a goal."""

    state: StatePlan
    error: Floats
    """[rows] the distance from the setpoint; up to a constant if the setpoint is a number"""
    dynamics: Dynamics | None
    """How the actions move it; None if no lag explains that."""
    settled: float | None
    """Rows that the log's own controller needs until a step has settled; None if nothing follows steps."""

    @classmethod
    def of(cls, state: StatePlan, actions: Sequence[Column], columns: Sequence[Column]) -> "Course":
        """Examine a state, without the rows of a startup."""
        values = np.clip(state.column.values, *state.column.body)
        inputs = [np.clip(action.values, *action.body) for action in actions]
        aim = find(state.setpoint, columns).values if isinstance(state.setpoint, str) else None
        return cls(
            state,
            values if aim is None else values - aim,
            fit_dynamics(values, inputs),
            None if aim is None else settling_rows(values, aim),
        )

    @property
    def needed(self) -> float | None:
        """Rows to look ahead; None if the log does not tell."""
        if self.settled is None:
            return None if self.dynamics is None else self.dynamics.settling
        return _ROOM * self.settled


def _pace(courses: Sequence[Course], states: Sequence[Floats], row: float) -> tuple[float, str]:
    """Return the seconds to look ahead, and how they were found; a row of the log takes `row` seconds."""
    slowest = max(
        (course for course in courses if course.needed), key=lambda c: c.needed or 0.0, default=None
    )
    if slowest is None or slowest.needed is None:
        seconds = memory([course.error for course in courses] or states) * row
        return 3 * seconds, f"three times {plain(seconds)} s, after which an error is forgotten"
    name, seconds = slowest.state.name, slowest.needed * row
    if slowest.settled is not None:
        return (
            seconds,
            f"the log's loop needs about {plain(slowest.settled * row)} s to bring {name} to its setpoint",
        )
    lag, dead = (slowest.dynamics.lag * row, slowest.dynamics.dead * row) if slowest.dynamics else (0.0, 0.0)
    late = f" and a dead time of {plain(dead)} s" if dead else ""
    return seconds, f"{name} follows the actions with a lag of about {plain(lag)} s{late}"


def _integral(course: Course, wishes: Wishes, names: Mapping[str, str], span: float) -> StatePlan:
    """Return the state with the sum of its errors, if a person wants it or the log shows a need for it."""
    state, fit = course.state, course.dynamics
    most = sensible(span * (state.column.body[1] - state.column.body[0]) / 2, 0.3)
    if state.most is not None:
        return replace(state, most=most)
    tolerance = state.tolerance or 0.0
    if state.column.constant or f"{state.name}_sum" in names.values() or wishes.integrals is not None:
        return state
    if course.settled is not None and abs(float(np.nanmedian(course.error))) > tolerance:
        return replace(state, most=most, summed="because the log has a constant offset")
    if fit is not None and wanders(fit.left, fit.settling) > tolerance:
        return replace(state, most=most, summed="because the log shows disturbances")
    return state


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
        if text.strip() == "-":
            setpoints.pop(find(state, states).name, None)
            continue
        value = _number(text)
        setpoints[find(state, states).name] = find(text, columns).name if value is None else value
    tolerances = {find(state, states).name: value for state, value in wishes.tolerances.items()}
    for state in tolerances:
        if state not in setpoints:
            what = f"--goal: {names[state]} has no setpoint: give --setpoint {names[state]}=VALUE"
            raise ClearloopError(what)
    filters = {find(state, states).name: seconds for state, seconds in wishes.velocities.items()}
    summed = {find(state, states).name for state in wishes.integrals or ()}
    for state in summed:
        if state not in setpoints:
            what = f"--integral: {names[state]} has no setpoint: give --setpoint {names[state]}=VALUE"
            raise ClearloopError(what)
    computed = {f"{names[state]}_dot": "--velocity" for state in filters}
    computed |= {f"{names[state]}_sum": "--integral" for state in summed}
    for name, option in computed.items():
        if name in names.values():
            raise ClearloopError(f"{option}: the log already has {quoted(name)}: leave {option} out")
    planned = []
    for column in states:
        aim = column.name in setpoints and (not tolerances or column.name in tolerances)
        planned.append(
            StatePlan(
                name=names[column.name],
                column=column,
                setpoint=setpoints.get(column.name),
                tolerance=tolerances.get(column.name, usual_tolerance(column)) if aim else None,
                filter=_filter(filters[column.name], dt) if column.name in filters else None,
                most=math.inf if column.name in summed else None,  # until the horizon is known
            )
        )
    planned += [StatePlan(name=names[column.name], column=column, external=True) for column in external]
    return tuple(planned)


def usual_tolerance(column: Column) -> float:
    """Return the error that costs nothing, unless a person gives another: a fiftieth of the range."""
    return sensible(_TOLERANCE * (column.body[1] - column.body[0]), 0.3)


def _filter(seconds: float | None, dt: float) -> float:
    """Return the share of its value that a first-order filter keeps in one step."""
    seconds = DEFAULT_FILTER * dt if seconds is None else seconds
    return round(math.exp(-dt / seconds), 3) if seconds > 0 else 0.0


def _action(
    column: Column, name: str, wishes: Wishes, actions: Sequence[Column], courses: Sequence[Course]
) -> ActionPlan:
    given = {find(key, actions).name: limits for key, limits in wishes.limits.items()}
    if column.constant:
        raise ClearloopError(
            f"column {quoted(column.name)} never changes: the log does not show what it does"
        )
    if column.name in given:
        limits = given[column.name]
    else:
        low, high = column.body
        limits = outward(low, high) if column.distinct > 2 else (low, high)
        if column.header.unit == "%" and NEARLY_FULL <= high <= 100 and low >= 0:
            limits = (0.0, 100.0)
    weight = _rate(column, limits, courses)
    return ActionPlan(name=name, column=column, limits=limits, rate=weight, step=_step(column, limits))


def _rate(column: Column, limits: tuple[float, float], courses: Sequence[Course]) -> float:
    """Return the weight with which the log's own changes cost a quarter of what its errors cost.

    Without a controller that follows setpoints, the log does not tell how quiet an action must be.
    """
    followed = [course for course in courses if course.settled is not None]
    moved = float(np.nanmean(np.abs(np.diff(np.clip(column.values, *limits))))) / (limits[1] - limits[0])
    if not followed or not moved > 0:
        return RATE
    errors = [
        np.nanmean(np.maximum(np.abs(course.error) - (course.state.tolerance or 0.0), 0))
        / unit_error(course.state)
        for course in followed
    ]
    return sensible(min(max(_SHARE * float(np.sum(errors)) / moved, RATE), _MOST_RATE), 0.3)


def _step(column: Column, limits: tuple[float, float]) -> float | None:
    """Return the column's step, if all its values are whole steps from the lower limit."""
    step, (low, high) = column.step, limits
    if step is None or (high - low) % step or (column.low - low) % step:
        return None
    return step


def remember(plan: Plan, report: Report) -> Plan:
    """Return the plan with as much history as the check of the log asks for."""
    asked = [finding for finding in report.findings if finding.code in ("delay", "short-history")]
    longest = max(asked, key=lambda finding: finding.numbers["history"], default=None)
    if longest is None or longest.numbers["history"] <= plan.history:
        return plan
    name = longest.numbers["name"]
    why = f"{name} acts late" if longest.code == "delay" else f"{name} depends on earlier rows"
    return replace(plan, history=longest.numbers["history"], remembers=why)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text) else None


# The task file: TOML with comments, made to be read and edited.

FEW_STEPS = 150  # of the horizon with the larger dt that is advised for a slow plant


def draft(plan: Plan, name: str, log: str) -> str:
    """Write the plan as a task file.

    Args:
        plan: What the file holds.
        name: The name of the task.
        log: The path of the log, for the comments.

    Returns:
        TOML.
    """
    lines = [
        f"# Drafted by `clearloop init` from {_comment(Path(log).name)}. Read it, correct it, then:",
        f"#   clearloop data check {_comment(log)} --task {name}.toml",
        f"#   clearloop learn {name}.toml --data {_comment(log)}",
        f"name = {_text(name)}",
        f"dt = {_written(plan.dt)}  # s between two rows, and between two actions{_seen(plan)}",
        *_advice(plan),
        f"horizon = {plan.horizon}  # steps to look ahead, 50 to 500: {plain(plan.horizon * plan.dt, 4)} s;",
        f"# {plan.pace}",
        f"discount = {_written(plan.discount)}  # a reward at the horizon still counts 5 %",
        f"history = {plan.history}  # rows that a controller sees; {_why_history(plan)}",
        "",
        "[states]  # what is measured; a setpoint is a number, or in quotes a column of the log",
        *(line for state in plan.states for line in _state(state)),
        "",
        "[actions]  # every controller keeps the limits",
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
    return f"; seen: {plain(least)} to {plain(most)} s, usually {plain(usual, 4)} s"


def _why_history(plan: Plan) -> str:
    return f"in the log, {plan.remembers}" if plan.remembers else "with 2 or more, also the last action"


def _advice(plan: Plan) -> Iterator[str]:
    if plan.settling > _MOST_STEPS * plan.dt:
        slower = sensible(plan.settling / FEW_STEPS, 0.3)
        yield f"# The log may be faster than the plant needs: dt = {_written(slower)} would look as far ahead"
        yield "# in fewer steps, if the controller may act so rarely; [sampling] then resamples the log."


def _state(state: StatePlan) -> Iterator[str]:
    unit = state.column.header.unit
    parts = [f"unit = {_text(unit)}"]
    if state.setpoint is not None:
        value = _text(state.setpoint) if isinstance(state.setpoint, str) else _written(state.setpoint)
        parts.append(f"setpoint = {value}")
    if state.external:
        parts.append("external = true")
    what = (
        f"# seen: {state.column.range}"
        + "; the controller sees it, the model does not predict it" * state.external
    )
    yield f"{_key(state.name)} = {{ {', '.join(parts)} }}  {what}"
    if state.filter is not None:
        keep, rest = _written(state.filter), _written(round(1 - state.filter, 3))
        rate = f"({state.name} - {state.name}[t-1])/dt"
        formula = f"{keep}*{state.name}_dot[t-1] + {rest}*{rate}" if state.filter else rate
        speed = f"unit = {_text(f'{unit}/s' if unit else '')}, formula = {_text(formula)}"
        yield f"# its velocity: the difference, through a first-order filter that keeps {keep} in a step"
        yield f"{_key(state.name + '_dot')} = {{ {speed} }}"
    if state.most is not None:
        most = _written(state.most)
        formula = f"clip({state.name}_sum[t-1] + dt*{state.name}.error, -{most}, {most})"
        total = f"unit = {_text(f'{unit} s' if unit else 's')}, formula = {_text(formula)}"
        yield f"# the sum of its errors, {state.summed}; limited against windup"
        yield f"{_key(state.name + '_sum')} = {{ {total} }}"


def _action_line(action: ActionPlan) -> str:
    low, high = map(_written, action.limits)
    parts = f"unit = {_text(action.column.header.unit)}, limits = [{low}, {high}]"
    seen = f"seen: {action.column.range}"
    if action.limits[0] > action.column.low or action.limits[1] < action.column.high:
        seen += ", the ends only in single rows"
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
        yield f"column = {_text(plan.reward)}  # the reward is learned from this column"
        return
    yield "terms = [  # costs; see docs/tasks.md for other kinds"
    for state in _aims(plan):
        track = f"track = {_text(state.name)}, tolerance = {_written(state.tolerance or 0.0)}"
        scale = _written(unit_error(state))
        yield f"  {{ {track}, scale = {scale} }},  # an error within the tolerance costs nothing"
    for action in plan.actions:
        why = (
            "in the log, changes cost a quarter of the errors"
            if action.rate > RATE
            else "changes, as a share of the range"
        )
        yield f"  {{ rate = {_text(action.name)}, weight = {_written(action.rate)} }},  # {why}"
    yield "]"


def unit_error(state: StatePlan) -> float:
    """Return the error that costs 1: a fifth of the range in the log."""
    low, high = state.column.body
    return sensible((high - low) / 5, 0.3)


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
        yield "[data]  # the log's names for these"
        yield from (f"{_key(name)} = {_text(column)}" for name, column in renamed.items())
        yield ""


def _sampling(plan: Plan) -> Iterator[str]:
    if plan.time is None:
        return
    yield "[sampling]  # how the rows of the log are put dt apart"
    if plan.time.kind == "number":
        yield f"time_unit = {_text(plan.unit)}"
    yield 'resample = "linear"  # where rows are not dt apart, states are interpolated and the rest is held'
    yield f"gap = {_written(USUAL_GAP * plan.dt)}  # s without a row, after which a new episode begins"


def _comment(text: str) -> str:
    """Write any text on one line."""
    return text if text.isprintable() else _text(text)


def _key(name: str) -> str:
    return name if name.isascii() else _text(name)


def _text(text: str) -> str:
    """Write a TOML string, which is JSON but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _written(value: float) -> str:
    """Write a number as a float in TOML, as short as is exact."""
    short = significant(value, 12)
    return repr(short if abs(short - value) <= 1e-15 * abs(value) else value)
