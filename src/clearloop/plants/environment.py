"""The plant of a task as a Gymnasium environment.

Importing this module registers the plants of the built-in tasks:
`gymnasium.make("clearloop.plants.environment:clearloop/cartpole-v0")`.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.plants.plant import PlantStepper
from clearloop.plants.scenarios import Scenarios
from clearloop.task import Task, builtin_tasks

_Vector = NDArray[np.float64]


class PlantEnvironment(gymnasium.Env[_Vector, _Vector]):
    """A plant that takes actions and gives states, in engineering units; one step is one control interval.

    Actions are limited, and rounded to those that the task allows.

    Args:
        task: A task with a plant, or the name of a built-in one.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own convention

    def __init__(self, task: str | Task = "cartpole") -> None:
        self.task = Task.load(task) if isinstance(task, str) else task
        self._full = self.task.unveiled
        self._plant = PlantStepper(self.task)
        low, high = self.task.action_limits.T
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        reach = np.full(len(self.task.states), STATE_LIMIT)
        self.observation_space = gymnasium.spaces.Box(-reach, reach, dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Vector, dict[str, Any]]:
        """Begin an episode at `options["start"]`, or else at random in the task's start box."""
        super().reset(seed=seed)
        start = (options or {}).get("start")
        point = self._full.random_starts(1, self.np_random)[0] if start is None else np.array(start, float)
        if point.shape != (len(self._full.states),) or not (np.abs(point) <= STATE_LIMIT).all():
            raise ClearloopError(
                f"start: expected a finite number for each of {', '.join(self._full.states)}"
            )
        self._scenario = Scenarios.explored(self.task, point[None], self.np_random, self.task.horizon)
        self._step = 0
        self._plant.begin(self._scenario.starts[0])
        return self._observation, self._info

    def step(self, action: _Vector) -> tuple[_Vector, float, bool, bool, dict[str, Any]]:
        """Run one control interval; the episode terminates if the plant fails or succeeds."""
        now = min(self._step, self.task.horizon - 1)
        aims, script = self._scenario.setpoints[0, now : now + 2], self._scenario.script[:, now : now + 2]
        moved = self._plant.step(np.asarray(action, np.float64), aims, script)
        self._step += 1
        return self._observation, moved.reward, moved.failed or moved.succeeded, False, self._info

    @property
    def _observation(self) -> _Vector:
        return self._plant.state[: len(self.task.states)]

    @property
    def _info(self) -> dict[str, Any]:
        aims = self._scenario.setpoints[0, min(self._step, self.task.horizon - 1)]
        named = dict(zip(self.task.states, aims.tolist(), strict=False))
        return {"setpoints": {name: named[name] for name in self.task.setpoints}}


def register() -> None:
    """Make the plants of the built-in tasks known to Gymnasium."""
    for name in builtin_tasks():
        task = Task.load(name)
        if task.simulated and f"clearloop/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                id=f"clearloop/{name}-v0",
                entry_point="clearloop.plants.environment:PlantEnvironment",
                kwargs={"task": name},
                max_episode_steps=task.horizon,
            )


register()
