"""What a bench found, as the paper's table: means over experiments, and which method is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from clearloop.data.cells import Floats

ORDER = ("lqr", "pid", "pso-p", "nfq-last", "nfq-selected", "psonn", "fpsrl", "fgprl", "gprl")
"""of the paper's table"""

PAPER = {
    "lqr": ("2.23", "3.01"),
    "pid": ("2.03", "3.04"),
    "pso-p": ("1.254 ± 0.001", "4.20 ± 0.04"),
    "nfq-last": ("15.0 ± 1.0", "15.5 ± 0.9"),
    "nfq-selected": ("2.71 ± 0.04", "5.4 ± 0.2"),
    "psonn": ("1.833 ± 0.002", "2.831 ± 0.003"),
    "fpsrl": ("1.819 ± 0.005", "2.69 ± 0.03"),
    "fgprl": ("1.814 ± 0.003", "2.798 ± 0.006"),
    "gprl": ("1.88 ± 0.02", "2.71 ± 0.03"),
}
"""Table 1: penalties on the model and on the system, from starts that the paper does not state."""


@dataclass(frozen=True)
class Row:
    """Of `table.csv`. What is unknown is empty, and so is all of an experiment that failed."""

    method: str
    track: str
    seed: int
    penalty_model: float | None = None
    penalty_system: float | None = None
    failures_system: float | None = None
    complexity: int | None = None


class Scores(NamedTuple):
    """What an experiment found of one method."""

    row: Row
    model: Floats
    """[N] penalties by start"""
    system: Floats | None


def read_scores(outcome: Mapping[str, Any], track: str, seed: int) -> list[Scores]:
    """Of what `experiment` gave."""
    found = []
    for method, score in outcome["scores"].items():
        model = np.array(score["model"])
        system = None if score["system"] is None else np.array(score["system"])
        row = Row(
            method,
            track,
            seed,
            float(model.mean()),
            None if system is None else float(system.mean()),
            score["failures"],
            score["complexity"],
        )
        found.append(Scores(row, model, system))
    return found


class Mean(NamedTuple):
    """Over experiments."""

    mean: float
    error: float
    """standard error; NaN for one experiment"""

    @classmethod
    def of(cls, values: Sequence[float | None]) -> "Mean":
        known = np.array([value for value in values if value is not None])
        if not known.size:
            return cls(np.nan, np.nan)
        error = known.std(ddof=1) / np.sqrt(known.size) if known.size > 1 else np.nan
        return cls(float(known.mean()), float(error))

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return ""
        return f"{self.mean:.3f}" if np.isnan(self.error) else f"{self.mean:.3f} ± {self.error:.3f}"


class Difference(NamedTuple):
    """How much more one method costs than another, from the same starts."""

    mean: float
    half_width: float
    """of the interval that holds the true difference in 95 of 100 benches"""

    @classmethod
    def of(cls, worse: Sequence[Floats], better: Sequence[Floats]) -> "Difference":
        """Of the penalties [N] of their experiments; where one was scored from fewer starts, from these.

        Two chances add up: which starts were drawn, and how the searches went.
        """
        n = min(len(costs) for costs in (*worse, *better))
        one, other = (np.stack([costs[:n] for costs in some]) for some in (worse, better))
        by_start = one.mean(axis=0) - other.mean(axis=0)
        variance = by_start.var(ddof=1) / n
        variance += sum(_of_searches(costs) for costs in (one, other))
        return cls(float(by_start.mean()), 1.96 * float(np.sqrt(variance)))

    @property
    def certain(self) -> bool:
        return abs(self.mean) > self.half_width

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.half_width:.3f}"


def _of_searches(costs: Floats) -> float:
    """The variance of the mean over experiments [E, N]."""
    means = costs.mean(axis=1)
    return float(means.var(ddof=1) / means.size) if means.size > 1 else 0.0


def ordered(methods: Sequence[str]) -> list[str]:
    """As in the paper; others after those."""
    place = {method: number for number, method in enumerate(ORDER)}
    return sorted(dict.fromkeys(methods), key=lambda method: place.get(method, len(ORDER)))


class Comparison(NamedTuple):
    method: str
    better: str
    """the next better method"""
    difference: Difference


def ranking(scores: Sequence[Scores]) -> list[Comparison]:
    """From the best to the worst, on the plant where there is one; each with the next better."""
    costs: dict[str, list[Floats]] = {}
    for one in scores:
        costs.setdefault(one.row.method, []).append(one.model if one.system is None else one.system)
    means = {method: np.mean([cost.mean() for cost in some]) for method, some in costs.items()}
    names = sorted(costs, key=means.__getitem__)
    return [
        Comparison(worse, better, Difference.of(costs[worse], costs[better]))
        for better, worse in pairwise(names)
    ]
