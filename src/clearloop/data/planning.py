"""From what a log looks like and what a person says about it to all that a task file needs."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from clearloop.data.cells import Floats
from clearloop.data.lookup import find, listed, make_names
from clearloop.data.plan import ActionPlan, Plan, StatePlan, Wishes
from clearloop.data.report import Report
from clearloop.data.roles import Guess, Role
from clearloop.data.survey import Column
from clearloop.data.timing import intervals, memory, outward, sensible, time_unit
from clearloop.errors import ClearloopError, quoted
from clearloop.task.sampling import SECONDS

MOST_STEPS, FEWEST_STEPS = 300, 50  # of the horizon
TOLERANCE = 0.02  # of a state's range, where nobody says
NEARLY_FULL = 90.0  # %
LEFT = 0.05  # what a reward at the horizon still counts
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
            f"cannot tell which column is the action: give --action COLUMN; {listed(columns)}"
        )
    if not states:
        what = "cannot tell which columns are states: give --state COLUMN"
        raise ClearloopError(f"{what}; {listed(columns)}")
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
    horizon = int(sensible(min(max(3 * seconds / dt, FEWEST_STEPS), MOST_STEPS), 0.1))
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
        discount=round(LEFT ** (1 / horizon), 4),
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
        usual = sensible(TOLERANCE * (column.high - column.low), 0.3)
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
