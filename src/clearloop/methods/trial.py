"""One trial of a gain: a state under proportional control, let go from a small deviation, on the models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clearloop.controllers import PID, encode
from clearloop.controllers.pid import Loop, Loops
from clearloop.data.cells import Flags, Floats, Ints
from clearloop.kernels.engine import Rollout, roll_out
from clearloop.kernels.layout import Job
from clearloop.methods.oscillation import Oscillation, find_oscillation
from clearloop.methods.problem import Problem


@dataclass(frozen=True, eq=False)
class Trial:
    """One gain, tried, and what came of it on the first of the search's models."""

    input: str
    action: str
    gain: float
    """of the deviation: action = gain · (setpoint - state)"""
    period: float
    """in steps, the median of the models; NaN where most do not oscillate"""
    ratio: float
    """of a swing to the one a period before"""
    errors: Floats
    """[T + 1] setpoint - state"""
    actions: Floats
    """[T]"""

    @property
    def oscillates(self) -> bool:
        return math.isfinite(self.ratio)

    @property
    def distance(self) -> float:
        """From a sustained oscillation; infinite where there is none."""
        return abs(math.log(self.ratio)) if self.oscillates else math.inf


@dataclass(frozen=True, eq=False)
class Laboratory:
    """Where trials are made: on the search's models, around a place of rest."""

    problem: Problem
    states: Floats
    """[S] of rest"""
    actions: Floats
    """[A] of rest"""
    steps: int
    """T of a trial"""
    push: float
    """the deviation: a share of the usual one, or of what the action can answer with this gain"""

    def usual_gain(self, state: str, action: str) -> float:
        """Answers the usual deviation of a state with the whole action."""
        task, scales = self.problem.task, self.problem.scales
        reach = scales[len(task.states) + task.action_names.index(action)]
        return float(reach / scales[task.state_names.index(state)])

    def run(self, closed: Sequence[tuple[str, Loop]], state: str, action: str, gain: float) -> Trial:
        """With other loops closed: each an action's name and a loop."""
        task = self.problem.task
        i, a = task.state_names.index(state), task.action_names.index(action)
        part = min(1.0, self.usual_gain(state, action) / abs(gain))
        start, aims = self.states.copy(), np.tile(self.states, (self.steps, 1))
        start[i] += self.push * part * self.problem.scales[i]
        aims[:, i] += self.actions[a] / gain  # what the action does at rest, it now does with no deviation
        loops = [*closed, (action, Loop(input=state, kp=gain))]
        states, actions, failed = self._roll_out(_controller(task.action_names, loops), start, aims)
        held = self._held(states, actions[:, :, a], failed, task.action_limits[a])
        seen = [self._look(member[:, i], int(steps)) for member, steps in zip(states, held, strict=True)]
        found = [oscillation for oscillation in seen if oscillation is not None]
        period, ratio = np.median(found, axis=0) if 2 * len(found) > len(seen) else (math.nan, math.nan)
        errors = np.append(aims[:, i], aims[-1, i]) - states[0, :, i]
        return Trial(state, action, gain, float(period), float(ratio), errors, actions[0, :, a].copy())

    def _roll_out(self, controller: PID, start: Floats, aims: Floats) -> tuple[Floats, Floats, Flags]:
        """States [M, T + 1, S], actions [M, T, A], and whether it failed [M]."""
        problem = self.problem
        members = problem.surrogate.search_members
        policies = encode([controller], problem.task, history=problem.history)
        rollout: Rollout = roll_out(
            policies._replace(counts=np.zeros_like(policies.counts)),  # small swings are not rounded away
            problem.surrogate.system(np.float64, members, problem.history),
            Job(start[None], aims, problem.task.discount, problem.history),
            trajectories=True,
        )
        problem.spent += len(members) * self.steps
        states, actions = np.asarray(rollout.states), np.asarray(rollout.actions)
        return states[:, 0, 0], actions[:, 0, 0], rollout.failed[:, 0, 0]

    def _held(self, states: Floats, actions: Floats, failed: Flags, limits: Floats) -> Ints:
        """[M] steps until the action is at a limit, the model in states that it does not know, or failed."""
        least, most = self.problem.surrogate.region[: states.shape[2]].T
        after = states[:, 1:]
        stuck = (after == states[:, :-1]).all(axis=2) & failed[:, None]
        known = ((after >= least) & (after <= most)).all(axis=2)
        fine = known & ~stuck & (actions > limits[0]) & (actions < limits[1])
        ends = np.pad(fine, ((0, 0), (0, 1)))  # with a step that is not fine
        return np.asarray(np.argmin(ends, axis=1))

    def _look(self, course: Floats, held: int) -> Oscillation | None:
        return find_oscillation(course[: held + 1]) if held >= self.problem.task.horizon else None


def _controller(actions: Sequence[str], loops: Sequence[tuple[str, Loop]]) -> PID:
    """An action that no loop is for does nothing."""
    nothing = (loops[-1][1].model_copy(update={"kp": 0.0}),)
    chosen = {name: tuple(loop for action, loop in loops if action == name) for name in actions}
    return PID(outputs={name: Loops(loops=some or nothing) for name, some in chosen.items()})
