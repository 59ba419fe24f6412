"""Which states failure alters: found in the data, without knowing the plant.

When the cart-pole fails, its velocities become 0 whatever they were. Networks that learn this from failing
transitions predict all others badly, and a reward network that sees it learns "velocity 0" instead of "outside
the limits", which no model ever predicts exactly: hence most of the optimism of models learned as published.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.surrogate.steps import Steps

FEWEST = 10  # failing transitions from which to tell; with fewer, all states are in doubt and count as altered
USUAL = 0.99  # of the ordinary transitions are closer to a linear model than this …
SURPRISING = 3.0  # … and failing ones that are so much further off …
TOLERATED = 0.1  # … may be this share; positions of the cart-pole reach 0.00, velocities 1.00


class Failure(NamedTuple):
    """What it does to the S states."""

    altered: Flags
    """[S] whether it sets them to something that the step does not explain"""
    values: Floats
    """[S] what they then are, if always the same; otherwise NaN"""

    @classmethod
    def nothing(cls, n_states: int) -> "Failure":
        return cls(np.zeros(n_states, np.bool_), np.full(n_states, np.nan))

    def to_dict(self, names: Sequence[str]) -> dict[str, float | None]:
        """Of the altered states: what they then are; None where that differs."""
        found = zip(names, self.altered, self.values.tolist(), strict=True)
        return {name: None if math.isnan(value) else value for name, altered, value in found if altered}

    @classmethod
    def from_dict(cls, values: Mapping[str, float | None], names: Sequence[str]) -> "Failure":
        known = [values.get(name) for name in names]
        return cls(
            np.array([name in values for name in names]),
            np.array([np.nan if value is None else value for value in known]),
        )


def find_alterations(steps: Steps) -> Failure:
    n_failing = int(np.count_nonzero(steps.failing))
    if n_failing == 0 or n_failing == len(steps):
        return Failure.nothing(steps.next.shape[1])
    after = steps[steps.failing].next
    constant = (after == after[0]).all(axis=0) & (steps.next != after[0]).any(axis=0)
    altered = constant | _surprises(steps) | (n_failing < FEWEST)
    return Failure(altered, np.where(constant & (n_failing >= FEWEST), after[0], np.nan))


def _surprises(steps: Steps) -> Flags:
    """[S] whether failing transitions do what a linear model of the others finds very odd."""
    inputs = np.column_stack([steps.window, np.ones(len(steps))])
    ordinary = ~steps.failing
    gains, *_ = np.linalg.lstsq(inputs[ordinary], steps.change[ordinary])
    errors = np.abs(steps.change - inputs @ gains)
    odd = errors[steps.failing] > SURPRISING * np.quantile(errors[ordinary], USUAL, axis=0)
    return np.asarray(odd.mean(axis=0) > TOLERATED)
