"""A task's plant as a Gymnasium environment: `gymnasium.make("clearloop/cartpole-v0")`."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from clearloop.task import Task, builtin_tasks

Observation = NDArray[np.float64]


class PlantEnvironment(gymnasium.Env[Observation, NDArray[np.float64]]):
    """States in, actions out, in engineering units; one step is one control interval.

    `reset(options={"start": [...]})` starts from a given state, otherwise from the task's start box.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own convention

    def __init__(self, task: str | Task = "cartpole") -> None:
        self.task = Task.load(task) if isinstance(task, str) else task
        low, high = self.task.action_limits.T
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        reach = np.full(len(self.task.state_names), np.inf)
        self.observation_space = gymnasium.spaces.Box(-reach, reach, dtype=np.float64)
        self._state = np.zeros(len(reach))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        start = (options or {}).get("start")
        self._state = self.task.random_starts(1, self.np_random)[0] if start is None else np.array(start, float)
        return self._state.copy(), {}

    def step(self, action: NDArray[np.float64]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._state, reward, failed = step_plant(self.task, self._state, np.asarray(action, float))
        return self._state.copy(), reward, failed, False, {}


def step_plant(task: Task, state: Observation, action: NDArray[np.float64]) -> tuple[Observation, float, bool]:
    """The plant's next state, the reward and whether it failed, by the engine."""
    from clearloop.kernels.engine import roll_out
    from clearloop.kernels.layout import SEQUENCE, Job, Policies
    from clearloop.plants.lowering import lower_plant

    aims = [float(task.setpoints.get(name, 0.0)) for name in task.state_names]
    job = Job(state[None], np.array([aims]), task.discount, task.history)
    none = np.zeros(0, np.int64)
    policies = Policies(
        kind=SEQUENCE,
        numbers=action[None],
        sizes=none,
        code=none.astype(np.int32),
        operand=np.zeros(0),
        spans=np.zeros((1, 1), np.int64),
        limits=task.action_limits,
    )
    rollout = roll_out(policies, lower_plant(task), job, trajectories=True, workers=1)
    assert rollout.states is not None  # noqa: S101
    return rollout.states[0, 0, 0, 1], float(rollout.returns[0, 0, 0]), bool(rollout.failed[0, 0, 0])


def register() -> None:
    """Called by Gymnasium when it looks for the environments of installed packages."""
    for name in builtin_tasks():
        task = Task.load(name)
        if task.derivatives and f"clearloop/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                id=f"clearloop/{name}-v0",
                entry_point="clearloop.plants.environment:PlantEnvironment",
                kwargs={"task": name},
                max_episode_steps=task.horizon,
            )
