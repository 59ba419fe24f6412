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
from clearloop.plants.lowering import lower_plant, task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.plants.sequences import fixed_actions
from clearloop.task import Task, builtin_tasks
from clearloop.task.levels import to_levels

Vector = NDArray[np.float64]


class PlantEnvironment(gymnasium.Env[Vector, Vector]):
    """States in, actions out, in engineering units; one step is one control interval.

    Actions are limited, and rounded to those that the task allows.
    `reset(options={"start": [...]})` starts from a given state, otherwise from the task's start box.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  Gymnasium's own convention

    def __init__(self, task: str | Task = "cartpole") -> None:
        self.task = Task.load(task) if isinstance(task, str) else task
        self._full = self.task.unveiled
        self._history = task_window(self.task)
        system = lower_plant(self.task, history=self._history)
        # The judge remembers the episode, the engine sees one step of it: it only moves the plant.
        self._system = system._replace(dynamics=system.dynamics._replace(absorbing=False))
        low, high = self.task.action_limits.T
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        reach = np.full(len(self.task.states), STATE_LIMIT)
        self.observation_space = gymnasium.spaces.Box(-reach, reach, dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        super().reset(seed=seed)
        start = (options or {}).get("start")
        point = self._full.random_starts(1, self.np_random)[0] if start is None else np.array(start, float)
        if point.shape != (len(self._full.states),) or not (np.abs(point) <= STATE_LIMIT).all():
            raise ClearloopError(
                f"start: expected a finite number for each of {', '.join(self._full.states)}"
            )
        self._scenario = Scenarios.explored(self.task, point[None], self.np_random, self.task.horizon)
        self._step, nothing = 0, np.zeros(len(self.task.actions))
        self._window = np.tile([*self._scenario.starts[0], *nothing], (self._history, 1))
        self._judge = Judge(self.task, self._named(self._observation))
        return self._observation, self._info

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        asked = np.asarray(action, np.float64)
        chosen = to_levels(asked, self.task.action_limits, self.task.action_counts)
        after = self._advance(chosen)
        actions = dict(zip(self.task.actions, chosen.tolist(), strict=True))
        reward, failed = self._judge.judge(actions, self._named(after), self._info["setpoints"])
        assert reward is not None  # noqa: S101  a plant without a formula for its reward was refused above
        if failed:
            after = np.array(
                [self.task.on_failure.get(n, x) for n, x in zip(self._full.states, after, strict=True)]
            )
        self._window = np.vstack([[*after, *np.zeros_like(chosen)], self._window[:-1]])
        self._step += 1
        return self._observation, reward, bool(failed), False, self._info

    def _advance(self, action: Vector) -> Vector:
        now = min(self._step, self.task.horizon - 1)
        script = self._scenario.script[:, now : now + 2]
        aims = self._scenario.setpoints[:, now : now + 2]
        self._window[0, len(self._full.states) :] = action
        window = self._window.reshape(1, -1)
        job = Job(window, aims, self.task.discount, self._history, script, steps=1)
        policies = fixed_actions(action[None, None], self.task)
        rollout = roll_out(policies, self._system, job, trajectories=True, workers=1)
        after: Vector = np.asarray(rollout.states)[0, 0, 0, 1]
        return after

    @property
    def _observation(self) -> Vector:
        return self._window[0, : len(self.task.states)].copy()

    @property
    def _info(self) -> dict[str, Any]:
        aims = self._scenario.setpoints[0, min(self._step, self.task.horizon - 1)]
        named = self._named(aims)
        return {"setpoints": {name: named[name] for name in self.task.setpoints}}

    def _named(self, state: Vector) -> dict[str, float]:
        return dict(zip(self.task.states, state.tolist(), strict=False))


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
