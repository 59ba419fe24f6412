"""A plant that is somebody's Gymnasium environment: stepped in Python, one episode after the other."""

from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.plants.plant import task_window
from clearloop.task import Task

# A task's reward and failure in plain Python, step by step: for plants that the engine does not run.

_Values = Mapping[str, float]


class EpisodeJudge:
    """Remembers as much of an episode as the task's formulas look back."""

    def __init__(self, task: Task, start: _Values) -> None:
        depth = task_window(task)
        self._task = task
        self._states: deque[_Values] = deque([start] * depth, maxlen=depth)
        self._actions: deque[_Values] = deque([dict.fromkeys(task.actions, 0.0)] * depth, maxlen=depth)

    def judge(self, action: _Values, after: _Values, setpoints: _Values) -> tuple[float | None, bool | None]:
        """Reward and failure of a step; None where the task has no formula for it."""
        self._actions.appendleft(action)
        verdicts = [
            None if formula is None else self._value(formula, after, setpoints)
            for formula in (self._task.reward_expression, self._task.failure_condition)
        ]
        self._states.appendleft(after)
        return verdicts[0], None if verdicts[1] is None else verdicts[1] != 0

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
    """What a controller is here."""

    def reset(self) -> Any: ...

    def act(
        self, observation: Mapping[str, float], memory: Any, setpoint: Mapping[str, float]
    ) -> dict[str, float]: ...


class GymEpisode(NamedTuple):
    """T steps."""

    states: Floats
    """[T + 1, S]"""
    actions: Floats
    """[T, A]"""
    rewards: Floats
    """[T]"""
    failed: bool


def make_environment(task: Task, steps: int) -> Any:
    """The environment that the task names, for episodes of so many steps."""
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


def _check_shape(task: Task, what: str, space: Any, names: str, count: int) -> None:
    if space.shape != (count,):
        raise ClearloopError(
            f"task '{task.name}': {task.gymnasium} has {what} of shape {space.shape}, [{names}] has {count}"
        )


def run_episode(environment: Any, controller: Actor, task: Task, setpoints: Floats, seed: int) -> GymEpisode:
    """A controller from where the environment resets to with this seed; `setpoints`: [T, S].

    Observations are the task's states in their order. The reward is the task's, or the environment's own
    where the task learns it from a column. What fails or terminates stays where it is, and goes on paying;
    where the task does not say what failure is, to terminate is to fail.
    """
    observation, _ = environment.reset(seed=seed)
    memory, state = controller.reset(), _named(task, observation)
    judge = EpisodeJudge(task, state)
    states, actions, rewards, failed, over = [state], [], [], False, False
    for aims in setpoints:
        setpoint = _named(task, aims)
        action = controller.act(state, memory, setpoint)
        if not over:
            vector = np.array([action[name] for name in task.actions], environment.action_space.dtype)
            observation, own, terminated, _, _ = environment.step(vector)
            state = _named(task, observation)
            known, failing = judge.judge(action, state, setpoint)
            reward = float(own) if known is None else known
            failed = bool(terminated) if failing is None else failing
            over = failed or bool(terminated)
        states.append(state)
        actions.append(action)
        rewards.append(reward)
    return GymEpisode(_table(states, task.states), _table(actions, task.actions), np.array(rewards), failed)


def _named(task: Task, values: Any) -> dict[str, float]:
    return dict(zip(task.states, map(float, values), strict=True))


def _table(rows: list[dict[str, float]], names: Collection[str]) -> Floats:
    return np.array([[row[name] for name in names] for row in rows])
