"""A task's plant as a Gymnasium environment. Importing this module registers those of the built-in tasks:
`gymnasium.make("clearloop.plants.environment:clearloop/cartpole-v0")`.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.plants.judgement import Judge
from clearloop.plants.lowering import formula_window, lower_plant
from clearloop.plants.sequences import fixed_actions
from clearloop.plants.setpoints import setpoint_table
from clearloop.task import Task, builtin_tasks

Vector = NDArray[np.float64]


class PlantEnvironment(gymnasium.Env[Vector, Vector]):
    """States in, actions out, in engineering units; one step is one control interval.

    `reset(options={"start": [...]})` starts from a given state, otherwise from the task's start box.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own convention

    def __init__(self, task: str | Task = "cartpole") -> None:
        self.task = Task.load(task) if isinstance(task, str) else task
        self._history = formula_window(self.task)
        system = lower_plant(self.task, history=self._history)
        # The judge remembers the episode, the engine sees one step of it: it only moves the plant.
        self._system = system._replace(dynamics=system.dynamics._replace(absorbing=False))
        self._setpoints = setpoint_table(self.task, 1)
        low, high = self.task.action_limits.T
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        reach = np.full(len(self.task.states), STATE_LIMIT)
        self.observation_space = gymnasium.spaces.Box(-reach, reach, dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        super().reset(seed=seed)
        start = (options or {}).get("start")
        self._state = (
            self.task.random_starts(1, self.np_random)[0] if start is None else np.array(start, np.float64)
        )
        if not self.observation_space.contains(self._state):
            raise ClearloopError(f"start: expected a finite number for each of {', '.join(self.task.states)}")
        self._judge = Judge(self.task, self._named(self._state))
        return self._state.copy(), {}

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        chosen = np.clip(np.asarray(action, np.float64), *self.task.action_limits.T)
        after = self._advance(chosen)
        actions = dict(zip(self.task.actions, chosen.tolist(), strict=True))
        reward, failed = self._judge.judge(actions, self._named(after), self._named(self._setpoints[0]))
        assert reward is not None  # noqa: S101  a plant without a formula for its reward was refused above
        if failed:
            after = np.array([self.task.on_failure.get(name, x) for name, x in self._named(after).items()])
        self._state = after
        return after.copy(), reward, bool(failed), False, {}

    def _advance(self, action: Vector) -> Vector:
        job = Job(self._state[None], self._setpoints, self.task.discount, self._history)
        policies = fixed_actions(action[None, None], self.task)
        rollout = roll_out(policies, self._system, job, trajectories=True, workers=1)
        after: Vector = np.asarray(rollout.states)[0, 0, 0, 1]
        return after

    def _named(self, state: Vector) -> dict[str, float]:
        return dict(zip(self.task.states, state.tolist(), strict=True))


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
