"""The linear plant of sec. 3.1, s′ = U s + V a + c, as it follows from a batch, in absolute coordinates.

What a plant does depends on its states, its actions and on what comes from outside; its setpoints only move
the controller. So states are not measured from their setpoints here. The three kinds of states are treated
apart:

- States that are logged are fitted (`identification.py`), with as many lags and as much dead time as the
  log shows.
- States that are computed have formulas, whose slopes are exact. They are not fitted, and no state follows
  from them: they hold nothing that the logged values do not.
- External states are inputs. They are assumed to stay nearly as they are, so that controllers feed them
  forward, and to return to their means.

Steps that fail are left out, because failure changes states as no linear plant does. If the log does not
determine a number, its standard error says so; if it determines none, this is an error, and nothing is
guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers.controller import check_names
from clearloop.data import Batch
from clearloop.data.causality import has_effect
from clearloop.data.log import first_rows, last_rows, setpoint_rows
from clearloop.errors import ClearloopError, UnsuitableError
from clearloop.expression import Variable, evaluate, variables
from clearloop.methods.identification import (
    LONGEST_DELAY,
    MOST_LAGS,
    TINY,
    Equations,
    Record,
    fit_equations,
)
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

_COLLINEAR = 1e-6  # the smallest singular value of states and actions, as a share of the largest
CERTAIN = 3.0  # standard errors that an effect must be away from 0
HELD = 0.999  # share of an external state's distance from its mean that is left after a step
FREE = 1e3  # the weight against deviations at rest of process variables, relative to other states and actions
MOST_ROWS = 20_000  # rows of the log that are used, in evenly spaced pieces
_PIECE = 2_000  # rows of a piece


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model of S states and A actions with H rows of history, in the units of the log.

    Its state z is the window of H rows without the present actions and without what nothing reads.
    """

    task: Task
    gains: Floats
    """[S, H (S + A)] from the window (states and actions of each lag, the present first) to the next state"""
    constant: Floats
    """[S] c"""
    aims: Floats
    """[S, S] from the setpoints to the next state; 0 but for computed states"""
    errors: Floats
    """[S, H (S + A)] standard error of each gain; 0 where it is known"""
    residual: Floats
    """[S] standard deviation of the prediction errors; 0 for states that are not fitted"""
    sizes: Floats
    """[S + A] standard deviations of states, half the ranges of actions"""
    middle: Floats
    """[S + A] means in the log; 0 if the plant is symmetric"""
    usual: Floats
    """[S] the usual setpoints of the log; 0 for states without one"""
    delays: Ints
    """[S, A] dead time from each action to each logged state, in steps beyond the one that actions take"""
    equations: Equations
    """the difference equations of the logged states"""

    @property
    def history(self) -> int:
        """H, the number of rows that the model looks at; it may be more than the task's."""
        return int(self.gains.shape[1]) // len(self.sizes)

    @property
    def slopes(self) -> Floats:
        """[S, H, S + A] the gains, with an axis for the lag."""
        return self.gains.reshape(len(self.task.states), self.history, -1)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """The entries of z as (lag, column): present states, past states and past actions that are read."""
        s = len(self.task.states)
        read = self.gains.any(axis=0).reshape(self.history, -1)
        deepest = np.where(read.any(axis=0), self.history - 1 - np.argmax(read[::-1], axis=0), 0)
        states = [(lag, j) for lag in range(self.history) for j in range(s) if lag <= deepest[j]]
        actions = [
            (lag, j) for lag in range(1, self.history) for j in range(s, len(self.sizes)) if lag <= deepest[j]
        ]
        return states + actions

    @property
    def matrices(self) -> tuple[Floats, Floats]:
        """U [n, n] and V [n, A], with the past among the states; `names` names the entries of z."""
        s, entries = len(self.task.states), self.entries
        place = {entry: k for k, entry in enumerate(entries)}
        u, v = np.zeros((len(entries), len(entries))), np.zeros((len(entries), len(self.task.actions)))
        u[:s] = self.slopes[:, [lag for lag, _ in entries], [j for _, j in entries]]
        v[:s] = self.slopes[:, 0, s:]
        for k, (lag, j) in enumerate(entries):
            if lag == 1 and j >= s:
                v[k, j - s] = 1.0  # what is present now is past then
            elif lag:
                u[k, place[lag - 1, j]] = 1.0
        return u, v

    @property
    def names(self) -> tuple[str, ...]:
        """[n] the names of the entries of z, as formulas write them."""
        names = self.task.scope.names
        return tuple(str(Variable(names[j], lag=lag or None)) for lag, j in self.entries)

    def held(self, states: Floats, actions: Floats) -> Floats:
        """Return z [n] of a plant that has been at these states [S] with these actions [A] for long."""
        row = np.append(states, actions)
        return np.array([row[j] for _, j in self.entries])

    def rest(
        self, wanted: Flags, aims: Floats | None = None, *, limited: bool = True
    ) -> tuple[Floats, Floats]:
        """Return the steady state whose `wanted` states [S] are nearest to their setpoints, or to 0.

        Args:
            wanted: [S] the process variables.
            aims: [S] the setpoints; None takes the usual ones of the log.
            limited: True if the actions are limited.

        Returns:
            The states [S] and the actions [A]. Sums of the past, which may rest anywhere, are 0.
        """
        s, a = len(self.task.states), len(self.task.actions)
        aims = self.usual if aims is None else aims
        origin = self.middle.copy()
        aimed = wanted | np.isin(self.task.state_names, list(self.task.setpoints))
        origin[:s] = np.where(aimed, aims, origin[:s])
        fitted = ~np.isin(self.task.state_names, self.task.scope.derived)
        static = self.slopes.sum(axis=1)
        kept = np.hstack([np.eye(s) - static[:, :s], -static[:, s:]])
        sizes = np.where(self.sizes > 0, self.sizes, 1.0)
        scale = sizes * np.append(np.where(wanted, 1.0, FREE), np.full(a, FREE))
        left = (self.constant - kept @ origin)[fitted] / sizes[:s][fitted]
        point = origin + scale * np.linalg.lstsq((kept * scale)[fitted] / sizes[:s][fitted, None], left)[0]
        for j in np.flatnonzero(~fitted):
            point[j] = 0.0
            if abs(kept[j, j]) > TINY:
                point[j] = (self.constant[j] + self.aims[j] @ aims - kept[j] @ point) / kept[j, j]
        low, high = self.task.action_limits.T
        return point[:s], np.clip(point[s:], low, high) if limited else point[s:]

    def drawn(self, count: int, rng: np.random.Generator) -> Iterator["LinearModel"]:
        """Yield models whose fitted numbers differ from these as much as their standard errors say."""
        for equations in self.equations.drawn(count, rng):
            yield _assembled(self, equations)


def identify(task: Task, batch: Batch, *, history: int | None = None, plain: bool = False) -> LinearModel:
    """Fit a linear model to a batch; the last few models are remembered as long as their batch exists.

    Args:
        task: The task, which says which states are computed and which come from outside.
        batch: The log.
        history: The most rows that the model may look at, the present one included; None looks back as far as
            it helps, also further than the task.
        plain: True for least squares alone over the rows of the task's history, as in sec. 3.1 of the paper.

    Raises:
        UnsuitableError: The batch does not determine the model; the message says why and what to log.
    """
    known = _KNOWN.setdefault(batch, [])
    for one in known:
        if one.task is task and (one.history, one.plain) == (history, plain):
            return one.model
    with threadpool_limits(limits=1, user_api="blas"):  # more threads wait for each other
        model = _fitted(task, batch, history, plain)
    known.append(_Known(task, history, plain, model))
    del known[:-REMEMBERED]
    return model


class _Known(NamedTuple):
    task: Task
    history: int | None
    plain: bool
    model: LinearModel


REMEMBERED = 4  # models of a batch: searches, margins and answers ask for the same one
_KNOWN: WeakKeyDictionary[Batch, list[_Known]] = WeakKeyDictionary()


def _fitted(task: Task, batch: Batch, history: int | None, plain: bool) -> LinearModel:
    if len(batch) > MOST_ROWS:
        batch = batch.thinned(MOST_ROWS, _PIECE)
    record, logged, external = _record(task, batch)
    _check_present(task, record, logged, external)
    most = max(task.history, 1 if plain else MOST_LAGS) if history is None else history
    longest = task.history if plain else min(LONGEST_DELAY + most, most if history is not None else 10**6)
    equations = fit_equations(
        record, most_lags=most, longest=longest, plain=plain, symmetric=task.symmetric, kept=task.history
    )
    s, a = len(task.states), len(task.actions)
    delays = np.zeros((s, a), np.int64)
    delays[logged] = equations.delays
    both = np.hstack([batch.states, np.nan_to_num(batch.actions)])
    middle = (
        np.zeros(s + a)
        if task.symmetric
        else np.append(batch.states.mean(axis=0), np.nanmean(batch.actions, axis=0))
    )
    aims = setpoint_rows(task, batch.setpoints, len(batch.states))
    empty = LinearModel(
        task=task,
        gains=np.zeros((s, 0)),
        constant=np.zeros(s),
        aims=np.zeros((s, s)),
        errors=np.zeros((s, 0)),
        residual=np.zeros(s),
        sizes=np.append(both[:, :s].std(axis=0), np.ptp(task.action_limits, axis=1) / 2),
        middle=middle,
        usual=np.median(aims, axis=0),
        delays=delays,
        equations=equations,
    )
    model = _assembled(empty, equations)
    _check_effects(model, batch)
    return model


def _record(task: Task, batch: Batch) -> tuple[Record, Ints, Ints]:
    """Return the rows of a batch, and the numbers of its logged states and of the external ones that vary."""
    names = np.array(task.state_names)
    logged = np.flatnonzero(np.isin(names, task.predicted))
    external = _varying(task, batch)
    failing = np.zeros(len(batch.states), np.bool_)
    acting = np.flatnonzero(~last_rows(batch.episodes))
    failing[acting] = Steps.of(task, batch).failing
    known = ~last_rows(batch.episodes) & ~failing
    age = np.arange(len(batch.states)) - first_rows(batch.episodes)
    record = Record(
        batch.states[:, logged], batch.states[:, external], np.nan_to_num(batch.actions), known, age
    )
    return record, logged, external


def _varying(task: Task, batch: Batch) -> Ints:
    """Return the external states that change; a constant one is part of the constant c."""
    return np.array(
        [
            j
            for j, n in enumerate(task.state_names)
            if n in task.scope.external and np.ptp(batch.states[:, j])
        ],
        np.int64,
    )


def _assembled(model: LinearModel, equations: Equations) -> LinearModel:
    """Return the model with these equations, with the formulas of computed states and held external ones."""
    task, s = model.task, len(model.task.states)
    width = len(model.sizes)
    names = np.array(task.state_names)
    logged = np.flatnonzero(np.isin(names, task.predicted))
    external = np.flatnonzero(np.isin(names, task.scope.external) & (model.sizes[:s] > 0))
    lags, depth = equations.states.shape[1], equations.actions.shape[1]
    formulas = {name: _linear_formula(model, name) for name in task.derived}
    deepest = max((lag for formula in formulas.values() for lag, _ in formula.slopes), default=0)
    rows = max(lags, depth, deepest, 1)
    slopes, errors = np.zeros((s, rows, width)), np.zeros((s, rows, width))
    seen = np.append(logged, external)
    own = np.ix_(logged, np.arange(lags), seen)
    acts = np.ix_(logged, np.arange(depth), np.arange(s, width))
    slopes[own], slopes[acts] = equations.states, equations.actions
    errors[own], errors[acts] = equations.state_errors, equations.action_errors
    constant, aims, residual = np.zeros(s), np.zeros((s, s)), np.zeros(s)
    constant[logged], residual[logged] = equations.constant, equations.residual
    for j in np.flatnonzero(np.isin(names, task.scope.external)):
        slopes[j, 0, j], constant[j] = HELD, (1 - HELD) * model.middle[j]
    for name, formula in formulas.items():
        j = np.intp(task.state_names.index(name))
        constant[j], aims[j] = formula.constant, formula.aims
        for (lag, column), slope in formula.slopes.items():
            if lag:
                slopes[j, lag - 1, column] += slope  # a lag of 1 at the next row is the present row
            else:
                slopes[j] += slope * slopes[column]
                constant[j] += slope * constant[column]
                aims[j] += slope * aims[column]
    return replace(
        model,
        gains=slopes.reshape(s, -1),
        errors=errors.reshape(s, -1),
        constant=constant,
        aims=aims,
        residual=residual,
        equations=equations,
    )


@dataclass(frozen=True, eq=False)
class _LinearFormula:
    """The formula of a computed state, linear about the usual values of the log."""

    slopes: dict[tuple[int, int], float]
    """by lag and column of states and actions"""
    aims: Floats
    """[S] slopes by the setpoints"""
    constant: float


def _linear_formula(model: LinearModel, name: str) -> _LinearFormula:
    """Find the slopes of a formula by central differences, which are exact where it is linear."""
    task, formula = model.task, model.task.derived[name]
    s, names = len(task.states), task.scope.names
    read = variables(formula)
    usual = {variable: _usual(model, variable) for variable in read}
    slopes: dict[tuple[int, int], float] = {}
    aims, constant = np.zeros(s), evaluate(formula, usual)
    for variable in read:
        column = names.index(variable.name)
        push = 1e-3 * (model.sizes[column] or 1.0)
        ends = [evaluate(formula, usual | {variable: usual[variable] + sign * push}) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * push)
        constant -= slope * usual[variable]
        if variable.part != "value":
            aims[column] += slope if variable.part == "setpoint" else -slope
        if variable.part != "setpoint":
            place = variable.lag or 0, column
            slopes[place] = slopes.get(place, 0.0) + slope
    return _LinearFormula(slopes, aims, constant)


def _usual(model: LinearModel, variable: Variable) -> float:
    column = model.task.scope.names.index(variable.name)
    if variable.part == "setpoint":
        return float(model.usual[column])
    return float(model.middle[column] - (model.usual[column] if variable.part == "error" else 0.0))


def _check_present(task: Task, record: Record, logged: Ints, external: Ints) -> None:
    """Check that there are enough rows, that states and actions vary, and that none follows the others."""
    rows = record.known
    present = np.hstack([record.outputs, record.external, record.actions])[rows]
    unknown = present.shape[1] + 1
    if len(present) < unknown + 2:
        raise UnsuitableError(
            f"batch: badly identified: {len(present)} steps that do not fail are too few for the {unknown} "
            "numbers that a linear model has for each state: log more steps"
        )
    names = [*(task.state_names[j] for j in (*logged, *external)), *task.action_names]
    for name, values in zip(names, present.T, strict=True):
        if not np.ptp(values):
            raise UnsuitableError(
                f"batch: badly identified: {name} never changes, so its effect is unknown: "
                "log it while it varies, or leave it out of the task"
            )
    centred = present - present.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred / centred.std(axis=0), full_matrices=False)
    if sizes[-1] < _COLLINEAR * sizes[0]:
        shares = np.abs(directions[-1])
        bound = [name for name, share in zip(names, shares, strict=True) if share > 0.1 * shares.max()]
        raise UnsuitableError(
            f"batch: badly identified: one of {', '.join(bound)} is always the same linear function of the "
            "others: log some minutes with a small random signal added to the action, or leave one out"
        )


def _check_effects(model: LinearModel, batch: Batch) -> None:
    """Check that every action has an effect, on all states and with all lags together.

    An effect that drowns in noise from one row to the next may still be seen over many rows, which is how the
    check of the data looks for it. Then the numbers stand, with their large errors.
    """
    for i, (name, effective) in enumerate(
        zip(model.task.action_names, model.equations.effective, strict=True)
    ):
        if not effective and not has_effect(model.task, batch, i):
            raise UnsuitableError(
                f"batch: badly identified: no effect of {name} stands out from the noise: "
                f"log more steps, or larger changes of {name}"
            )


# Process variables (sec. 3.2 of the paper) are the states that a classical controller controls.

FOLLOWS = 0.9  # share of the variance of a state's changes that another state must explain to be its rate


def find_process_variables(task: Task, batch: Batch) -> tuple[str, ...]:
    """Return the states that the reward reads or that have a setpoint; all states if there are none of these.

    External states are never among them. A state that is, by the batch, only the rate of change of another
    one is left out: a loop that controls a position also controls its speed.
    """
    named = _goals(task) or set(task.state_names) - set(task.scope.external)
    steps = Steps.of(task, batch)
    steps = steps[~steps.failing]
    index = {name: i for i, name in enumerate(task.state_names) if name in named}
    rates = {b for a, b in product(index, index) if a != b and _is_rate(steps, index[a], index[b])}
    return tuple(name for name in index if name not in rates) or tuple(index)


def _goals(task: Task) -> set[str]:
    formulas = [f for f in (task.reward_expression, task.failure_condition) if f is not None]
    read = {variable.name for formula in formulas for variable in variables(formula)}
    return (read | set(task.setpoints)) & set(task.state_names) - set(task.scope.external)


def _is_rate(steps: Steps, state: int, other: int) -> bool:
    """Tell whether a state's changes follow the mean of the other state before and after the step."""
    change = steps.change[:, state]
    mean = (steps.window[:, other] + steps.next[:, other]) / 2
    if len(steps) < 3 or not np.ptp(change) or not np.ptp(mean):
        return False
    return bool(np.corrcoef(change, mean)[0, 1] > FOLLOWS**0.5)


_SOON = 10  # steps after which an action has moved what it moves


def _effects(model: LinearModel) -> Floats:
    """Return how far a unit of each action moves each state within some steps [S, A], also through others."""
    step, moved = model.matrices
    effects = np.zeros((len(model.task.states), len(model.task.actions)))
    for _ in range(min(_SOON, model.task.horizon)):
        effects += np.abs(moved[: len(effects)])
        moved = step @ moved
    return effects


def pair_loops(
    model: LinearModel, wanted: Sequence[str], given: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Pair each process variable with the action that moves it most.

    An action that is left over is paired with the process variable that it moves most.

    Args:
        model: The linear model, whose gains tell what moves what.
        wanted: The process variables.
        given: The pairs that the user gives, if any: for each action, the states that it controls.

    Returns:
        Pairs (state, action), sorted by action.

    Raises:
        ClearloopError: `given` names what is not there, or leaves out an action.
    """
    task = model.task
    if given:
        check_names("pid.loops", given, "an action", task.action_names)
        for action in task.action_names:
            if not given.get(action):
                raise ClearloopError(
                    f"pid.loops: missing action '{action}': name the states that it controls"
                )
            check_names(f"pid.loops.{action}", given[action], "a state", task.state_names)
        return [(state, action) for action, states in given.items() for state in dict.fromkeys(states)]
    s = len(task.states)
    effects = _effects(model) * model.sizes[s:] / model.sizes[:s, None]
    rows = [task.state_names.index(name) for name in wanted]
    chosen = {(name, int(np.argmax(effects[row]))) for name, row in zip(wanted, rows, strict=True)}
    for idle in set(range(len(task.actions))) - {a for _, a in chosen}:
        chosen.add((wanted[int(np.argmax(effects[rows, idle]))], idle))
    ordered = sorted(chosen, key=lambda pair: (pair[1], task.state_names.index(pair[0])))
    return [(name, task.action_names[a]) for name, a in ordered]
