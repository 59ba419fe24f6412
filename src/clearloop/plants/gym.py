"""Plants that are programs of others run one episode after the other: environments, FMUs and packages."""

import math
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.plants.cosimulation import ProcessEnvironment
from clearloop.plants.plant import task_window
from clearloop.task import Task

_Values = Mapping[str, float]


class EpisodeJudge:
    """The reward and the ends of a task in plain Python, for plants that the engine does not run.

    It remembers as much of an episode as the task's formulas look back.

    Args:
        task: The task.
        start: The first state of the episode.
    """

    def __init__(self, task: Task, start: _Values) -> None:
        depth = task_window(task)
        self._task = task
        self._states: deque[_Values] = deque([start] * depth, maxlen=depth)
        self._actions: deque[_Values] = deque([task.past_actions] * depth, maxlen=depth)

    def judge(self, action: _Values, after: _Values, setpoints: _Values) -> tuple[float | None, float | None]:
        """Return the reward and the end of a step, each None if the task has no formula for it.

        An end is 1 if the step fails, -1 if it succeeds, and 0 if the episode goes on.

        Args:
            action: The action of the step.
            after: The state after it.
            setpoints: The setpoints of the step.
        """
        self._actions.appendleft(action)
        verdicts = [
            None if formula is None else self._value(formula, after, setpoints)
            for formula in (self._task.reward_expression, self._task.end_mark)
        ]
        self._states.appendleft(after)
        return verdicts[0], verdicts[1]

    def _value(self, formula: Expression, after: _Values, setpoints: _Values) -> float:
        def read(variable: Variable) -> float:
            if variable.name in self._task.actions:
                return self._actions[variable.lag or 0][variable.name]
            aim = setpoints.get(variable.name, 0.0)
            if variable.part == "setpoint":
                return aim
            state = after if variable.lag is None else self._states[variable.lag]
            return state[variable.name] - (aim if variable.part == "error" else 0.0)

        return evaluate(formula, {variable: read(variable) for variable in variables(formula)})


class Actor(Protocol):
    """The part of a controller that an episode needs."""

    def reset(self) -> Any:
        """Return the memory of a new episode."""

    def act(
        self, observation: Mapping[str, float], memory: Any, setpoint: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the actions of one step."""


class Completion(Protocol):
    """The computation of states that a plant does not show; `controllers.memory.Derivation` does it."""

    def complete(self, observation: _Values, setpoints: _Values) -> dict[str, float]:
        """Return the observation with the states that the task computes."""

    def acted(self, action: _Values) -> None:
        """Take the action that was chosen for the latest observation."""


class GymEpisode(NamedTuple):
    """An episode of T steps: states [T + 1, S], actions [T, A] and rewards [T]."""

    states: Floats
    actions: Floats
    rewards: Floats
    failed: bool
    ended: bool
    """whether a failure, a success or the environment ended it"""
    steps: int
    """the number of steps until then"""


def settings_of(task: Task, number: int) -> dict[str, float]:
    """Return what start number `number` of a package begins with."""
    settings = task.plant.settings if task.plant else {}
    return {name: values[number % len(values)] for name, values in settings.items()}


def make_environment(task: Task, steps: int) -> Any:
    """Return the environment, the FMU or the package that the task names, for episodes of so many steps.

    Raises:
        ClearloopError: If there is no such environment, or if it does not fit the task.
    """
    if task.apart:
        return ProcessEnvironment(task)
    import gymnasium

    identity = task.gymnasium or ""
    try:
        environment = gymnasium.make(identity, max_episode_steps=steps, disable_env_checker=True)
    except (gymnasium.error.Error, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise ClearloopError(f"task '{task.name}': gymnasium '{identity}': {reason}") from error
    _check_shape(task, "an observation", environment.observation_space, "states", len(task.states))
    _check_shape(task, "an action", environment.action_space, "actions", len(task.actions))
    return environment


def check_plant(task: Task) -> None:
    """Check, before long work that ends with tests on it, that a plant that is a program of others runs.

    Raises:
        ClearloopError: The environment, the FMU or the package is missing, or it does not fit the task.
    """
    if task.foreign and task.scorable:
        make_environment(task, 1).close()


def _check_shape(task: Task, what: str, space: Any, names: str, count: int) -> None:
    if space.shape != (count,):
        raise ClearloopError(
            f"task '{task.name}': {task.gymnasium} has {what} of shape {space.shape},"
            f" but [{names}] has {count}"
        )


def run_episode(
    environment: Any,
    controller: Actor,
    task: Task,
    setpoints: Floats,
    seed: int,
    *,
    start: _Values | None = None,
    completion: Completion | None = None,
) -> GymEpisode:
    """Run a controller for one episode of a plant that is a program of others.

    Observations are the task's states in their order. The reward is that of the task, or the environment's
    own if the task learns it from a column. An episode that fails or terminates stays in its last state, and
    its last reward is repeated to the end; after a success there is no more reward. In a task that knows no
    end, termination counts as failure.

    Args:
        environment: The environment, from `make_environment`.
        controller: The controller.
        task: The task.
        setpoints: [T, S] the setpoints of each step.
        seed: The seed with which the environment is reset.
        start: The first values of states, for an FMU or a package.
        completion: What computes the states that the plant does not show; None: it shows all of them.
    """
    table = [_named(task, aims) for aims in setpoints]

    computed = {name: value for name, value in (start or {}).items() if name in task.derived}

    def seen(values: Any, aims: _Values, given: _Values) -> dict[str, float]:
        state = {**_named(task, values), **given}
        if completion is None:
            return state
        known = {name: value for name, value in state.items() if not math.isnan(value)}
        found = completion.complete(known, aims)
        return {name: found[name] for name in task.states}

    observation, _ = environment.reset(seed=seed, options=start)
    memory, state = controller.reset(), seen(observation, table[0], computed)
    judge = EpisodeJudge(task, state)
    states, actions, rewards, failed, over, end = [state], [], [], False, False, None
    taken = 0
    for setpoint, after in zip(table, [*table[1:], table[-1]], strict=True):
        action = controller.act(state, memory, setpoint)
        if not over:
            if completion is not None:
                completion.acted(action)
            vector = np.array([action[name] for name in task.actions], environment.action_space.dtype)
            observation, own, terminated, _, _ = environment.step(vector)
            state = seen(observation, after, {})
            known, end = judge.judge(action, state, setpoint)
            reward = float(own) if known is None else known
            failed = bool(terminated) if end is None else end > 0
            over, taken = bool(end) or bool(terminated), taken + 1
        elif end is not None and end < 0:
            reward = 0.0
        states.append(state)
        actions.append(action)
        rewards.append(reward)
    tables = _table(states, task.states), _table(actions, task.actions), np.array(rewards)
    return GymEpisode(*tables, failed, over, taken)


def _named(task: Task, values: Any) -> dict[str, float]:
    return dict(zip(task.states, map(float, values), strict=True))


def _table(rows: list[dict[str, float]], names: Collection[str]) -> Floats:
    return np.array([[row[name] for name in names] for row in rows])
