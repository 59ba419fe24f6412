"""Logged steps as the tuples (s, a, s′, r) that Eq. (1) of the paper goes through."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.surrogate.steps import Steps
from clearloop.task import Task


class Experience(NamedTuple):
    """n steps. s is what a controller can read: the states, then those and the actions of each lag."""

    state: Floats
    """[n, R]"""
    action: Floats
    """[n, A]"""
    after: Floats
    """[n, R]"""
    reward: Floats
    """[n]"""
    failing: Flags
    """[n] whether it led into failure, where the reward is paid to the end"""

    def some(self, rows: Ints) -> "Experience":
        return Experience(
            self.state[rows], self.action[rows], self.after[rows], self.reward[rows], self.failing[rows]
        )

    @property
    def pairs(self) -> Floats:
        """[n, R + A] what Q is a function of."""
        return np.hstack([self.state, self.action])


def experience(task: Task, steps: Steps) -> Experience:
    n_states, width = len(task.states), len(task.scope.names)
    window = steps.window
    state = np.delete(window, np.s_[n_states:width], axis=1)
    after = np.hstack([steps.next, window[:, : window.shape[1] - width]])
    return Experience(state, window[:, n_states:width], after, steps.reward, steps.failing)


def as_errors(task: Task, steps: Steps) -> Steps:
    """The same steps with the states, now and before, as distances from the setpoint."""
    aims = np.hstack([steps.setpoints, np.zeros((len(steps), len(task.actions)))])
    return replace(
        steps,
        next=steps.next - steps.setpoints,
        window=steps.window - np.tile(aims, (1, task.history)),
        setpoints=np.zeros_like(steps.setpoints),
        aims=np.zeros_like(steps.aims),
    )


def with_mirror_image(steps: Steps) -> Steps:
    """Of a symmetric plant: with all signs turned, they are steps that it could have taken as well."""
    image = replace(
        steps,
        next=-steps.next,
        window=-steps.window,
        before=-steps.before,
        setpoints=-steps.setpoints,
        aims=-steps.aims,
    )
    return Steps(
        *(np.concatenate(pair) for pair in zip(vars(steps).values(), vars(image).values(), strict=True))
    )


def total(discount: float, steps: int) -> float:
    """Σ γᵏ, k = 0 … steps − 1: what a reward of 1 at every step adds up to."""
    return float(steps if discount == 1 else (1 - discount**steps) / (1 - discount))
