"""The linear plant of sec. 3.1, s′ = U s + V a + c, is identified by least squares from a batch.

States are deviations from their setpoints. The constant c is there because a plant may have its steady state
elsewhere than at 0 (a symmetric plant has c = 0). Steps that fail are left out, because failure changes
states as no linear plant does. If the task has a history, the model looks back only as far as it helps.
External states are not learned: they are assumed to stay nearly as they are, so that controllers feed them
forward, and to return to their means. If the log does not determine a number, this is an error; nothing is
guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers.controller import check_names
from clearloop.data import Batch
from clearloop.errors import ClearloopError, UnsuitableError
from clearloop.expression import Variable, variables
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

_COLLINEAR = 1e-6  # the smallest singular value of states and actions, as a share of the largest
TINY = 1e-9  # share of usual sizes below which differences are rounding
CERTAIN = 4.0  # standard errors that an effect must be away from 0
HELPS = 0.95  # a longer history must reduce the residual of some state to this share
HELD = 0.999  # share of an external state's distance from its mean that is left after a step
FREE = 1e3  # the weight against deviations at rest of process variables, relative to other states and actions


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model of S states and A actions with H rows of history.

    Its state z is the window of H rows without the present actions.
    """

    task: Task
    history: int
    """H, at most the history of the task"""
    gains: Floats
    """[S, H (S + A)] from the window (states and actions of each lag, the present first) to the next state"""
    constant: Floats
    """[S] c"""
    residual: Floats
    """[S] standard deviation of the prediction errors"""
    spread: Floats
    """[H (S + A)] standard error of each gain, for a residual of 1"""
    sizes: Floats
    """[S + A] standard deviations of states, half the ranges of actions"""

    @property
    def slopes(self) -> Floats:
        """[S, H, S + A] the gains, with an axis for the lag."""
        return self.gains.reshape(len(self.task.states), self.history, -1)

    @property
    def matrices(self) -> tuple[Floats, Floats]:
        """U [n, n] and V [n, A], with the past among the states: n = H S + (H − 1) A, named by `names`."""
        s, a, h = len(self.task.states), len(self.task.actions), self.history
        blocks = self.slopes
        past = s * h
        u, v = np.zeros((past + a * (h - 1),) * 2), np.zeros((past + a * (h - 1), a))
        u[:s, :past] = blocks[:, :, :s].reshape(s, -1)
        u[:s, past:] = blocks[:, 1:, s:].reshape(s, -1)
        v[:s] = blocks[:, 0, s:]
        u[s:past, : past - s] = np.eye(past - s)  # what is present now is past then
        if h > 1:
            v[past : past + a] = np.eye(a)
            u[past + a :, past : len(u) - a] = np.eye(a * (h - 2))
        return u, v

    @property
    def names(self) -> tuple[str, ...]:
        """[n] the names of the entries of z, as formulas write them."""
        states = [(name, lag) for lag in range(self.history) for name in self.task.state_names]
        actions = [(name, lag) for lag in range(1, self.history) for name in self.task.action_names]
        return tuple(str(Variable(name, lag=lag or None)) for name, lag in (*states, *actions))

    def rest(self, wanted: Flags) -> tuple[Floats, Floats]:
        """Return the steady state nearest to 0 in the `wanted` states [S]: deviations [S] and actions [A]."""
        s, a = len(self.task.states), len(self.task.actions)
        static = self.slopes.sum(axis=1)
        scale = self.sizes * np.append(np.where(wanted, 1.0, FREE), np.full(a, FREE))
        kept = np.hstack([np.eye(s) - static[:, :s], -static[:, s:]]) * scale
        point = scale * np.linalg.lstsq(kept, self.constant)[0]
        low, high = self.task.action_limits.T
        return point[:s], np.clip(point[s:], low, high)


def identify(task: Task, batch: Batch) -> LinearModel:
    """Fit a linear model to a batch by least squares.

    Raises:
        UnsuitableError: The batch does not determine the model; the message says why and what to log.
    """
    steps = _known_steps(task, batch)
    s, a = len(task.states), len(task.actions)
    window = steps.window.reshape(len(steps), task.history, s + a).copy()
    window[:, :, :s] -= steps.setpoints[:, None]
    inputs, targets = window.reshape(len(steps), -1), steps.next - steps.setpoints
    _check_present(task, inputs[:, : s + a])
    models = [_fit(task, inputs[:, : h * (s + a)], targets, h) for h in range(1, task.history + 1)]
    inside = ~np.isin(task.state_names, task.scope.external)
    least = (models[-1].residual + TINY * models[-1].sizes[:s])[inside]
    enough = (model for model in models if (HELPS * model.residual[inside] <= least).all())
    model = next(enough, models[-1])
    _check_effects(model)
    return _with_held(model, targets.mean(axis=0), np.flatnonzero(~inside))


def _known_steps(task: Task, batch: Batch) -> Steps:
    """Return the steps that do not fail; if they are enough, only those whose whole window was logged."""
    steps, episodes = Steps.of(task, batch), batch.transitions().episode
    age = np.arange(len(steps)) - np.searchsorted(episodes, episodes)
    whole = ~steps.failing & (age >= task.history - 1)
    enough = np.count_nonzero(whole) > 2 * steps.window.shape[1]
    return steps[whole if enough else ~steps.failing]


def _fit(task: Task, inputs: Floats, targets: Floats, history: int) -> LinearModel:
    """Fit windows [n, H (S + A)] to next states [n, S], both as deviations from setpoints."""
    moved = not task.symmetric
    middle, aim = moved * inputs.mean(axis=0), moved * targets.mean(axis=0)
    x, y = inputs - middle, targets - aim
    scale = np.where(x.any(axis=0), np.sqrt(np.mean(x**2, axis=0)), 1.0)
    inverse = np.linalg.pinv(x / scale, rcond=_COLLINEAR)  # past rows may well say the same as present ones
    gains = (inverse @ y).T / scale
    freedom = len(x) - x.shape[1] - 1
    residual = np.sqrt(np.sum((y - x @ gains.T) ** 2, axis=0) / freedom)
    return LinearModel(
        task=task,
        history=history,
        gains=gains,
        constant=aim - gains @ middle,
        residual=residual,
        spread=np.sqrt(np.sum(inverse**2, axis=1)) / scale,
        sizes=np.append(targets.std(axis=0), np.ptp(task.action_limits, axis=1) / 2),
    )


def _with_held(model: LinearModel, means: Floats, external: Ints) -> LinearModel:
    """Replace the rows of external states: nothing acts on them, and they return to their means slowly."""
    gains, constant = model.gains.copy(), model.constant.copy()
    gains[external] = 0.0
    gains[external, external] = HELD
    constant[external] = (1 - HELD) * means[external]
    return replace(model, gains=gains, constant=constant)


def _check_present(task: Task, present: Floats) -> None:
    """Check the present rows [n, S + A]: there are enough, all columns vary, and none follows the others."""
    unknown = task.history * present.shape[1] + 1
    if len(present) < unknown + 2:
        raise UnsuitableError(
            f"batch: badly identified: {len(present)} steps that do not fail are too few for the {unknown} "
            "numbers that a linear model has for each state: log more steps"
        )
    names = task.scope.names
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


def _check_effects(model: LinearModel) -> None:
    """Check that every action has an effect, now or after a few steps."""
    s, a = len(model.task.states), len(model.task.actions)
    error = CERTAIN * model.residual[:, None] * model.spread
    floor = TINY * model.sizes[:s, None] / np.tile(model.sizes, model.history)
    clear = np.asarray(np.abs(model.gains) > error + floor).reshape(-1, s + a)
    seen = np.asarray(clear.any(axis=0))
    for name, effect in zip(model.task.action_names, seen[s:], strict=True):
        if not effect:
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
    effects = np.abs(model.gains.reshape(s, -1, len(model.sizes))[:, :, s:]).sum(axis=1)
    effects = effects * model.sizes[s:] / model.sizes[:s, None]
    rows = [task.state_names.index(name) for name in wanted]
    chosen = {(name, int(np.argmax(effects[row]))) for name, row in zip(wanted, rows, strict=True)}
    for idle in set(range(len(task.actions))) - {a for _, a in chosen}:
        chosen.add((wanted[int(np.argmax(effects[rows, idle]))], idle))
    ordered = sorted(chosen, key=lambda pair: (pair[1], task.state_names.index(pair[0])))
    return [(name, task.action_names[a]) for name, a in ordered]
