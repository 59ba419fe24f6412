"""A plant that is somebody's Gymnasium environment: stepped in Python, one episode after the other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.task import Task


def roll_out_environment(controller: Any, task: Task, episodes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The returns and failures [episodes] of a controller; start n is the environment's reset with seed n.

    Observations are the task's states in their order. The reward is the task's, or the environment's own where
    the task learns it from a column; an environment that terminates has failed.
    """
    environment = _make(task)
    returns, failed = np.zeros(episodes), np.zeros(episodes, np.bool_)
    try:
        for episode in range(episodes):
            returns[episode], failed[episode] = _episode(environment, controller, task, episode)
    finally:
        environment.close()
    return returns, failed


def _make(task: Task) -> Any:
    import gymnasium

    try:
        environment = gymnasium.make(task.gymnasium or "")
    except gymnasium.error.Error as error:
        raise ClearloopError(f"task '{task.name}': gymnasium '{task.gymnasium}': {str(error).partition(chr(10))[0]}") from error
    expected = {"observation": (len(task.state_names),), "action": (len(task.action_names),)}
    found = {"observation": environment.observation_space.shape, "action": environment.action_space.shape}
    for what, shape in expected.items():
        if found[what] != shape:
            raise ClearloopError(
                f"task '{task.name}': {task.gymnasium} has an {what} of shape {found[what]}, the task needs {shape}"
            )
    return environment


def _episode(environment: Any, controller: Any, task: Task, seed: int) -> tuple[float, bool]:
    observation, _ = environment.reset(seed=seed)
    memory = controller.reset()
    total, gain, reward, failed = 0.0, 1.0, 0.0, False
    before = {name: 0.0 for name in task.action_names}
    state = dict(zip(task.state_names, map(float, observation), strict=True))
    for _ in range(task.horizon):
        if not failed:  # failure is absorbing: what it costs is paid to the horizon
            action = controller.act(state, memory)
            vector = np.array([action[name] for name in task.action_names], environment.action_space.dtype)
            observation, own, terminated, _, _ = environment.step(vector)
            after = dict(zip(task.state_names, map(float, observation), strict=True))
            reward, failed = _judge(task, state, after, action, before, float(own), terminated)
            state, before = after, action
        total += gain * reward
        gain *= task.discount
    return total, failed


def _judge(task: Task, *step: Any) -> tuple[float, bool]:
    *_, own, terminated = step
    reward = own if task.reward_expression is None else _value(task.reward_expression, task, *step)
    condition = task.failure_condition
    return reward, terminated if condition is None else bool(_value(condition, task, *step))


def _value(formula: Expression, task: Task, state: Any, after: Any, action: Any, before: Any, *_: Any) -> float:
    def read(variable: Variable) -> float:
        if variable.name in action:
            return float((before if variable.lag else action)[variable.name])
        aim = task.setpoints.get(variable.name, 0.0)
        if variable.part == "setpoint":
            return float(aim)
        value = float((after if variable.lag is None else state)[variable.name])
        return value - float(aim) if variable.part == "error" else value

    return evaluate(formula, {variable: read(variable) for variable in variables(formula)})
