"""Which states failure alters: found in the data, without knowing the plant.

When the cart-pole fails, its velocities become 0 whatever they were. Networks that learn this from failing
steps predict all others badly; and a reward network that sees it learns "velocity 0" instead of "outside the
limits", which no model ever predicts: hence most of the optimism of models that are learned as published.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.surrogate.steps import Steps

FEWEST = 10  # failing steps from which to learn anything
USUAL = 0.99  # of the other steps differ from a linear model by no more than some error; …
SURPRISING = 3.0  # … a failing step that differs by so many times that error is odd; …
TOLERATED = 0.1  # … a state of which more of the failing steps are odd is altered (cart-pole: 0.00 or 1.00)


class Failure(NamedTuple):
    """What it does to the S states."""

    altered: Flags
    """[S] whether it sets them to something that the step does not explain"""
    values: Floats
    """[S] what they then are, if always the same; otherwise NaN"""

    @classmethod
    def of_all_states(cls, n_states: int, altered: bool) -> "Failure":
        return cls(np.full(n_states, altered), np.full(n_states, np.nan))

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
    """From what failing steps do that others do not."""
    if not steps.failing.any() or steps.failing.all():
        return Failure.of_all_states(steps.next.shape[1], altered=bool(steps.failing.any()))
    after = steps[steps.failing].next
    constant = (after == after[0]).all(axis=0) & (steps.next != after[0]).any(axis=0)
    return Failure(constant | _surprises(steps), np.where(constant, after[0], np.nan))


def _surprises(steps: Steps) -> Flags:
    """[S] whether failing steps do what a linear model of the others finds very odd."""
    inputs = np.column_stack([steps.window, np.ones(len(steps))])
    ordinary = ~steps.failing
    gains, *_ = np.linalg.lstsq(inputs[ordinary], steps.change[ordinary])
    errors = np.abs(steps.change - inputs @ gains)
    odd = errors[steps.failing] > SURPRISING * np.quantile(errors[ordinary], USUAL, axis=0)
    return np.asarray(odd.mean(axis=0) > TOLERATED)
