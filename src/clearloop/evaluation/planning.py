"""A planner (PSO-P, sec. 3.4 of the paper) searches the next actions on the model at every step.

(i) A swarm searches the action sequence x = (a_t, …, a_t+T−1) with the lowest penalty on the model; (ii) its
first action is applied; (iii) the plant moves on, and the planner begins again. A plan keeps each action for
some steps, counted from the start of the episode, so that the rest of a plan is a plan for the next step,
where the swarm begins with the best of them. Many plants are planned for at once, in single precision.
"""

from typing import NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers import Controller, Planner
from clearloop.controllers.planner import PlannerMemory
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.plant import fixed_actions, task_window
from clearloop.search.pso import PSO, Swarm
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.task.tables import to_levels

SPEED, _SLOW = 0.25, 0.05  # speeds of new particles, and of those near known plans, as shares of the range


class Plans(NamedTuple):
    """P plans for each of N plants, the best first."""

    step: int
    """step of the episode that they begin with"""
    shares: Floats
    """[P, N, T, A] actions as shares of their ranges"""

    def of(self, plants: Flags) -> "Plans":
        """Return the plans of some plants."""
        return Plans(self.step, self.shares[:, plants])

    def rest(self) -> "Plans":
        """Return the plans for the next step: without their first action, and with the last one twice."""
        return Plans(self.step + 1, np.concatenate([self.shares[:, :, 1:], self.shares[:, :, -1:]], axis=2))


class ModelPilot:
    """The search that a planner runs at every step, on a model."""

    def __init__(self, planner: Planner, task: Task, surrogate: Surrogate) -> None:
        """Prepare the model.

        Args:
            planner: The planner, as `for_task` returns it.
            task: The task.
            surrogate: The model.

        Raises:
            ClearloopError: The model has fewer members than the planner needs.
        """
        members = surrogate.search_members[: planner.members]
        if len(members) < planner.members:
            raise ClearloopError(
                f"members: the model has {len(members)} members to plan with, not {planner.members}"
            )
        self.planner, self.task = planner, task
        self.history = task_window(task)
        self.limits = np.array([planner.limits[name] for name in task.action_names])
        self.counts = np.array([planner.range_of(name).parts for name in task.action_names])
        self.system = surrogate.system(np.float32, members, history=self.history)
        discounts = task.discount ** np.arange(max(planner.horizon, task.horizon))
        near, far = np.split(discounts, [planner.horizon])
        levels = (*(task.reward_levels or ()), *([0.0] if task.success_condition else []))
        least = -max(levels) * float(near.sum()) if task.reward_levels else -np.inf
        self.least = least + 1e-6 * abs(least) if np.isfinite(least) else least
        """lowest penalty that a plan can have, up to rounding"""
        absorbing = self.system.dynamics.absorbing
        self.bill = -(task.failure_level or 0.0) * float(far.sum()) if absorbing else 0.0
        """penalty of failure after the end of a plan"""
        self.spent = 0
        """steps of the model so far"""

    def respond(self, memory: PlannerMemory) -> dict[str, float]:
        """Return the actions of one step of one plant, by name."""
        states, actions = self.task.state_names, self.task.action_names
        window = [
            memory.value(name, lag) if lag or name in states else 0.0  # 0 for the action to be chosen
            for lag in range(self.history)
            for name in (*states, *actions)
        ]
        aims = np.array([memory.error(Variable(name, "setpoint")) for name in states])
        memory.plans = self.decide(np.array([window]), aims[None], memory.plans)
        return dict(zip(actions, self.first(memory.plans)[0].tolist(), strict=True))

    def first(self, plans: Plans) -> Floats:
        """Return the first action [N, A] of the best plan for each plant."""
        return self._actions(plans.shares[0, :, 0])

    def decide(
        self, windows: Floats, aims: Floats, last: Plans | None = None, *, workers: int | None = None
    ) -> Plans:
        """Search plans for N plants.

        Args:
            windows: [N, H (S + A)] states and actions of each lag, the present first.
            aims: [N, S], or [S] for all, the present setpoints, which are assumed to last.
            last: The plans of the step before, if any.
            workers: The number of threads; None takes as many as there are cores.
        """
        aims = np.broadcast_to(aims, (len(windows), aims.shape[-1]))
        planner = self.planner
        rest = last and last.rest()
        step = rest.step if rest else 0
        segments = (step + np.arange(planner.horizon)) // planner.hold - step // planner.hold
        swarm = self._begin(len(windows), segments, step, rest)
        going = np.arange(len(windows))
        for _ in range(planner.rounds):
            costs = self._costs(windows[going], swarm.ask(going), segments, aims[going], workers)
            swarm.tell(costs, going)
            going = going[swarm.best_costs[:, going].min(axis=0) > self.least]
            if not going.size:
                break
        best = swarm.ranked()
        kept = best.reshape(*best.shape[:2], -1, len(self.limits))
        return Plans(step, kept.take(segments, axis=2))

    def _begin(self, plants: int, segments: Ints, step: int, rest: Plans | None) -> Swarm:
        """Return a swarm for each plant, whose parameters are actions as shares of their ranges."""
        planner, rng = self.planner, np.random.default_rng([self.planner.seed, step])
        shape = (planner.particles, 1, (segments[-1] + 1) * len(self.limits))
        positions, velocities = rng.random(shape), rng.uniform(-SPEED, SPEED, shape)
        low, high = self.limits.T
        nothing = np.clip(-low / (high - low), 0.0, 1.0)
        simple = np.stack([nothing, np.zeros_like(low), np.ones_like(low)])  # no action, the least, the most
        positions[:3, 0] = np.tile(simple, segments[-1] + 1)[: planner.particles]
        positions, velocities = (np.repeat(array, plants, axis=1) for array in (positions, velocities))
        if rest is not None:
            firsts = np.searchsorted(segments, np.arange(segments[-1] + 1))
            known = rest.shares[:, :, firsts].reshape(positions.shape)
            fresh = min(int(planner.particles * planner.fresh), planner.particles - 1)
            carried = max(1, min(round(planner.particles * planner.carried), planner.particles - fresh))
            around = planner.particles - fresh - carried
            reach = planner.spread * np.linspace(1.0, 0.1, around)[:, None, None]
            near = np.clip(known[:1] + reach * rng.standard_normal((around, *shape[1:])), 0.0, 1.0)
            positions = np.concatenate([known[:carried], near, positions[:fresh]])
            velocities[: carried + around] *= _SLOW / SPEED
        bounds = np.tile([0.0, 1.0], (positions.shape[2], 1))
        settings = PSO(particles=planner.particles)
        return Swarm(bounds, settings, rng=rng, begin=(positions, velocities))

    def _costs(
        self, windows: Floats, positions: Floats, segments: Ints, aims: Floats, workers: int | None
    ) -> Floats:
        """Return the penalties [P, n] of plans: minus the value function of sec. 3.4, the mean of members."""
        n_actions = len(self.limits)
        kept = self._actions(positions.reshape(*positions.shape[:2], -1, n_actions)).astype(np.float32)
        actions = kept.take(segments, axis=2).reshape(-1, len(segments), n_actions)
        aims = np.repeat(aims[:, None], len(segments), axis=1).astype(np.float32)
        job = Job(windows.astype(np.float32), aims, self.task.discount, self.history)
        rollout = roll_out(fixed_actions(actions, self.task), self.system, job, workers=workers)
        self.spent += rollout.returns.size * len(segments)
        costs: Floats = np.mean(self.bill * rollout.failed - rollout.returns, axis=0, dtype=np.float64)
        return costs

    def _actions(self, shares: Floats) -> Floats:
        low, high = self.limits.T
        return to_levels(low + shares * (high - low), self.limits, self.counts)


def with_model(controller: Controller, task: Task, surrogate: Surrogate | None = None) -> Controller:
    """Give a planner the model that it needs to act; other controllers stay as they are.

    Args:
        controller: Any controller.
        task: The task.
        surrogate: The model; None takes that of the planner's run, unless the planner has one.

    Raises:
        ClearloopError: The planner's run has no model for this task.
    """
    if not isinstance(controller, Planner) or (controller.pilot and surrogate is None):
        return controller
    controller = controller.for_task(task)
    if surrogate is None:
        try:
            surrogate = Surrogate.load(controller.run_directory / "surrogate", task)
        except ClearloopError as error:
            raise ClearloopError(
                f"planner: there is no model in its run {quoted(controller.run)}: {error}"
            ) from error
    return controller.with_pilot(ModelPilot(controller, task, surrogate))


def pilot_of(controller: Controller) -> ModelPilot | None:
    """Return the pilot of a planner that has its model; None for other controllers."""
    pilot = controller.pilot if isinstance(controller, Planner) else None
    return pilot if isinstance(pilot, ModelPilot) else None
