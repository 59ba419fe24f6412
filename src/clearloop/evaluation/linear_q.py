"""Fitted Q evaluation for whole populations: linear in features that do not change, so that it takes no time.

The features are what the last hidden layer of networks makes of states and actions, after these networks have
evaluated one controller, the reference. For another controller π only q(s′, π(s′)) differs, and an iteration
of Eq. (1) is a product with a matrix: with the weights w of the features φ,

    w_k = B y_k,  y_k = r + γ φ(s′, π(s′)) w_{k-1}:  w_k = B r_k + γ (B φ(s′, π(s′))) w_{k-1}

where B is that of least squares. These weigh a row by what its cross-entropy would: by 1 / (p (1 - p)), where
p is the share that the networks found.
"""

from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np

from clearloop.controllers import Controller, encode
from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.evaluation.approximators import Networks
from clearloop.evaluation.decisions import decisions
from clearloop.evaluation.experience import Experience, total
from clearloop.evaluation.q_evaluation import (
    asked_points,
    bounds,
    check_memory,
    first_view,
    iterate,
    possible_experience,
)  # fmt: skip
from clearloop.kernels.layout import Policies
from clearloop.plants.setpoints import setpoint_table
from clearloop.task import Task

ROWS = 3000  # of the batch, at random: more make it slower, and hardly better
NETWORKS = Networks(members=2)
RIDGE = 1e-3  # of the features' mean square: less of it, and errors grow from iteration to iteration
CAUTION = 0.01  # the least p (1 - p): rows that cost next to nothing do not outweigh all others


Features = Callable[[Floats], Floats]
"""from states and actions [n, columns] to [n, features]"""


class LinearQ:
    """Values from the batch alone, of any memoryless controller for the task's own setpoints."""

    def __init__(self, task: Task, steps: Experience, features: Features, shares: Floats) -> None:
        """`shares` [n]: from 0 to 1, what the networks answer for the steps."""
        self.task, self.steps, self._learned = task, steps, features
        self._setpoints = setpoint_table(task, 1)
        self._views = steps.after.astype(np.float32)
        phi = self._features(steps.pairs)
        weights = 1 / (shares * (1 - shares) + CAUTION)
        weighted = phi.T * (weights / weights.mean())
        normal = weighted @ phi
        normal += RIDGE * np.trace(normal) / len(normal) * np.eye(len(normal))
        solve: Floats = np.linalg.solve(normal, weighted)
        self.goes_on: Floats = solve * ~steps.failing
        """[features, n] B, without the steps that fail"""
        self.rewards, self.failures = self.goes_on @ steps.reward, (solve * steps.failing) @ steps.reward
        """[features] B r, and of that what lasts"""

    @classmethod
    def learn(
        cls,
        task: Task,
        batch: Batch,
        reference: Controller,
        *,
        rng: np.random.Generator,
    ) -> Self:
        """From a fitted Q evaluation of the reference by networks: half a minute."""
        reference = reference.for_task(task)
        check_memory(reference, task)
        aims = setpoint_table(task, 1)
        steps = possible_experience(task, batch, aims[0])
        asked = asked_points(reference, task, steps.after, aims)
        rows = rng.permutation(len(steps.reward))[:ROWS]
        fit = NETWORKS.begin(steps.pairs, np.concatenate([asked, steps.pairs[rows]]), rng=rng)
        returns = iterate(steps, len(asked) + len(rows), fit, task)
        low, high = bounds(steps, task)
        shares = (returns[:, len(asked) :].mean(axis=0) - low) / (high - low)
        return cls(task, steps.some(rows), partial(NETWORKS.features, fit), shares)

    @property
    def cost(self) -> int:
        """Of one value: logged steps that it looks at, as often as the horizon has steps."""
        return len(self.steps.reward) * self.task.horizon

    def penalties(self, policies: Policies, starts: Floats) -> Floats:
        """[P, N] of P controllers, encoded for the task's history in single precision, from N starts.

        Where it breaks down, returns come out higher than is possible, and a search would look for just that:
        what is too much is counted as a penalty, at the starts and, on average, in the batch.
        """
        views = first_view(self.task, starts).astype(np.float32)
        afterwards = decisions(policies, self.task, self._views, self._setpoints)
        at_first = decisions(policies, self.task, views, self._setpoints)
        low, high = bounds(self.steps, self.task)
        penalties = np.empty(at_first.shape[:2])
        for number, (later, first) in enumerate(zip(afterwards, at_first, strict=True)):
            features = self._features(np.hstack([self._views, later]))
            weights = self.iterate(features)
            returns = self._features(np.hstack([views, first])) @ weights
            impossible = np.maximum(features @ weights - high, 0).mean()
            penalties[number] = impossible + np.abs(returns - high) - high
        return np.minimum(penalties, -low)

    def iterate(self, features: Floats) -> Floats:
        """[features] the weights after the horizon's steps; `features` [n, features] of (s′, π(s′))."""
        discount, matrix = self.task.discount, self.goes_on @ features
        weights = np.zeros(len(matrix))
        for k in range(1, self.task.horizon + 1):
            weights = self.rewards + total(discount, k) * self.failures + discount * (matrix @ weights)
        return weights

    def value(self, controller: Controller, starts: Floats) -> Floats:
        """[N] of one controller."""
        policies = encode([controller], self.task, history=self.task.history, dtype=np.float32)
        penalties: Floats = self.penalties(policies, starts)[0]
        return penalties

    def _features(self, rows: Floats) -> Floats:
        """[n, features], the last of them 1."""
        return np.hstack([self._learned(rows), np.ones((len(rows), 1))])
