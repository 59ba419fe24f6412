"""CMA-ES draws candidates from a normal distribution that learns the shape of the cost function.

Equation numbers are those of Hansen (2016), "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772. The
root of the covariance is its Cholesky factor, and no product here is left to a linear algebra library, whose
last bits depend on the number of its threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.errors import check_range

FLATTEST = 1e-14  # the least variance: a parameter that stays at its bound would have none


@dataclass(frozen=True, kw_only=True)
class CMA:
    """Settings of a descent."""

    candidates: int = 50
    """number of candidates in every generation"""
    spread: float = 0.1
    """standard deviation of the first generation, as a share of each parameter's range"""

    def __post_init__(self) -> None:
        check_range(self, "candidates", 2)
        check_range(self, "spread", 1e-6, 1)


class Rates(NamedTuple):
    """The learning rates of a descent: Eqs. (49) and (55) to (58), with no weight for the worse half."""

    weights: Floats
    """[candidates] weights of the steps from the mean, from the best candidate to the worst"""
    mass: float
    """μ_eff: the number of steps with equal weights that would count the same"""
    path: float
    """rate of the path"""
    sigma_path: float
    """rate of the path that controls sigma"""
    damping: float
    """damping of the changes of sigma"""
    rank_one: float
    """rate of the covariance, towards the path"""
    rank_mu: float
    """rate of the covariance, towards the steps"""

    @classmethod
    def usual(cls, candidates: int, d: int) -> "Rates":
        """Return the rates that the tutorial recommends for d parameters."""
        good = np.maximum(np.log((candidates + 1) / 2) - np.log(np.arange(candidates) + 1), 0)
        weights = good / good.sum()
        mass = float(1 / np.sum(weights**2))
        sigma_path = (mass + 2) / (d + mass + 5)
        rank_one = 2 / ((d + 1.3) ** 2 + mass)
        return cls(
            weights=weights,
            mass=mass,
            path=(4 + mass / d) / (d + 4 + 2 * mass / d),
            sigma_path=sigma_path,
            damping=1 + 2 * max(0.0, float(np.sqrt((mass - 1) / (d + 1))) - 1) + sigma_path,
            rank_one=rank_one,
            rank_mu=min(1 - rank_one, 2 * (mass - 2 + 1 / mass) / ((d + 2) ** 2 + mass)),
        )


class Descent:
    """A CMA-ES within bounds: `ask` for candidates, evaluate them, `tell` their costs, and repeat."""

    def __init__(self, bounds: Floats, start: Floats, settings: CMA, *, rng: np.random.Generator) -> None:
        """Begin at a point.

        Args:
            bounds: [d, 2] the lowest and the highest value of each parameter.
            start: [d] the first mean.
            settings: The number of candidates and their first spread.
            rng: The source of all random numbers.
        """
        self.bounds, self.rng = np.asarray(bounds, np.float64), rng
        (low, high), d = self.bounds.T, len(self.bounds)
        self.rates = Rates.usual(settings.candidates, d)
        self.best_position, self.best_cost = np.array(start, np.float64), np.inf
        self.mean: Floats = (self.best_position - low) / (high - low)
        """[d] mean of the candidates, in the unit box, like all that follows"""
        self.sigma = settings.spread
        self.covariance: Floats = np.eye(d)
        """[d, d] covariance of the candidates, in units of sigma²"""
        self.path: Floats = np.zeros(d)
        """[d] sum of recent steps of the mean, in units of sigma"""
        self.sigma_path: Floats = np.zeros(d)
        """[d] the same with the covariance removed: long if steps agree, short if they cancel out"""
        self.generation = 0
        self.asked: Floats = np.zeros((settings.candidates, d))
        self._root = root(self.covariance)

    def ask(self) -> Floats:
        """Return [candidates, d] to be evaluated; candidates outside the bounds are moved onto them."""
        steps = np.einsum("ij,kj->ki", self._root, self.rng.standard_normal(self.asked.shape))
        self.asked = np.clip(self.mean + self.sigma * steps, 0.0, 1.0)
        return self._in_bounds(self.asked)

    def tell(self, costs: Floats) -> None:
        """Take the costs [candidates] of what was asked, and move on. NaN counts as infinite."""
        order = np.argsort(costs, kind="stable")  # NaN comes last
        if costs[order[0]] < self.best_cost:
            self.best_position = self._in_bounds(self.asked[order[0]])
            self.best_cost = float(costs[order[0]])
        steps = (self.asked[order] - self.mean) / self.sigma
        step = np.einsum("k,ki->i", self.rates.weights, steps)
        self.mean = self.mean + self.sigma * step  # Eq. (42)
        self.generation += 1
        self._adapt(steps, step)

    def revalue(self, cost: float) -> None:
        """Set the cost of the best position, when the costs are measured in a new way from now on."""
        self.best_cost = np.inf if np.isnan(cost) else cost

    @property
    def best(self) -> tuple[Floats, float]:
        """The best position so far, and its cost."""
        return self.best_position.copy(), self.best_cost

    def _adapt(self, steps: Floats, step: Floats) -> None:
        rates, d, rate = self.rates, len(step), self.rates.sigma_path
        straight = solved(self._root, step)
        self.sigma_path = (1 - rate) * self.sigma_path + np.sqrt(rate * (2 - rate) * rates.mass) * straight
        usual = np.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))
        length = np.sqrt(np.sum(self.sigma_path**2)) / usual
        self.sigma = min(1.0, self.sigma * float(np.exp(rate / rates.damping * (length - 1))))  # Eq. (44)

        young, rate = np.sqrt(1 - (1 - rate) ** (2 * (self.generation + 1))), rates.path
        going = float(length / young < 1.4 + 2 / (d + 1))
        self.path = (1 - rate) * self.path + going * np.sqrt(rate * (2 - rate) * rates.mass) * step
        kept = 1 - rates.rank_mu - rates.rank_one * (1 - (1 - going) * rate * (2 - rate))
        along = np.outer(self.path, self.path)
        spread = np.einsum("ki,kj->ij", steps * rates.weights[:, None], steps)
        self.covariance = kept * self.covariance + rates.rank_one * along + rates.rank_mu * spread  # Eq. (47)
        self._root = root(self.covariance)

    def _in_bounds(self, points: Floats) -> Floats:
        low, high = self.bounds.T
        inside: Floats = np.clip(low + points * (high - low), low, high)
        return inside

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain data: arrays, numbers, and the generator's state."""
        return {name: getattr(self, name) for name in _CHANGING} | {"rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where the state was taken."""
        for name in _CHANGING:
            setattr(self, name, state[name])
        self.rng.bit_generator.state = state["rng"]
        self._root = root(self.covariance)


_CHANGING = (
    "mean", "sigma", "covariance", "path", "sigma_path", "generation", "asked", "best_position", "best_cost",
)  # fmt: skip


def root(matrix: Floats) -> Floats:
    """Return the lower triangle L with L Lᵀ = matrix, up to `FLATTEST`."""
    lower: Floats = matrix + FLATTEST * np.eye(len(matrix))
    for k in range(len(lower)):
        lower[k:, k] /= np.sqrt(max(lower[k, k], FLATTEST))
        lower[k + 1 :, k + 1 :] -= np.outer(lower[k + 1 :, k], lower[k + 1 :, k])
    return np.tril(lower)


def solved(lower: Floats, right: Floats) -> Floats:
    """Return the x with L x = right."""
    x = right.copy()
    for k in range(len(x)):
        x[k] /= lower[k, k]
        x[k + 1 :] -= lower[k + 1 :, k] * x[k]
    return x


class Descents:
    """Many small descents at once, each without bounds, from the origin: what `Descent` does, row by row.

    The descents may have different numbers of parameters. Each has room for the most of them, and what it
    does not use stays 0.
    """

    def __init__(
        self, sizes: Sequence[int], candidates: int, spread: float, *, rng: np.random.Generator
    ) -> None:
        """Begin all descents.

        Args:
            sizes: [R] the number of parameters of each descent.
            candidates: The number of candidates K of each in every generation.
            spread: The standard deviation of the first generation.
            rng: The source of all random numbers.
        """
        self.sizes, self.candidates, self.rng = np.array(sizes), candidates, rng
        count, most = len(sizes), int(max(sizes, default=0))
        rates = [Rates.usual(candidates, d) for d in sizes]
        self.weights = Rates.usual(candidates, 1).weights
        # [R, 1] the rates of each, in the order of `Rates`
        self._mass, self._path, self._sigma_path, self._damping, self._rank_one, self._rank_mu = (
            np.array([one[field] for one in rates]).reshape(count, 1) for field in range(1, 7)
        )
        d = self.sizes[:, None]
        self._usual = np.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))
        self._used = np.arange(most) < d
        self.mean: Floats = np.zeros((count, most))
        self.sigma: Floats = np.full((count, 1), spread)
        self.covariance: Floats = np.tile(np.eye(most), (count, 1, 1))
        self.path: Floats = np.zeros((count, most))
        self.sigma_path: Floats = np.zeros((count, most))
        self.generation = 0
        self.asked: Floats = np.zeros((count, candidates, most))
        self._root = roots(self.covariance)

    def ask(self) -> Floats:
        """Return [R, K, most] candidates to be evaluated."""
        drawn = self.rng.standard_normal(self.asked.shape) * self._used[:, None]
        steps = np.einsum("rij,rkj->rki", self._root, drawn)
        self.asked = self.mean[:, None] + self.sigma[:, None] * steps
        return self.asked

    def tell(self, costs: Floats) -> None:
        """Take the costs [R, K] of what was asked, and move on. NaN counts as infinite."""
        order = np.argsort(costs, axis=1, kind="stable")
        ranked = np.take_along_axis(self.asked, order[:, :, None], axis=1)
        steps = (ranked - self.mean[:, None]) / self.sigma[:, None]
        step = np.einsum("k,rki->ri", self.weights, steps)
        self.mean = self.mean + self.sigma * step  # Eq. (42)
        self.generation += 1
        rate = self._sigma_path
        straight = solved_all(self._root, step)
        self.sigma_path = (1 - rate) * self.sigma_path + np.sqrt(rate * (2 - rate) * self._mass) * straight
        length = np.sqrt(np.sum(self.sigma_path**2, axis=1, keepdims=True)) / self._usual
        self.sigma = self.sigma * np.exp(rate / self._damping * (length - 1))  # Eq. (44)
        young, rate = np.sqrt(1 - (1 - rate) ** (2 * (self.generation + 1))), self._path
        going = length / young < 1.4 + 2 / (self.sizes[:, None] + 1)
        self.path = (1 - rate) * self.path + going * np.sqrt(rate * (2 - rate) * self._mass) * step
        kept = 1 - self._rank_mu - self._rank_one * (1 - (1 - going) * rate * (2 - rate))
        along = self.path[:, :, None] * self.path[:, None]
        spread = np.einsum("rki,rkj->rij", steps * self.weights[:, None], steps)
        self.covariance = (  # Eq. (47)
            kept[:, :, None] * self.covariance
            + self._rank_one[:, :, None] * along
            + self._rank_mu[:, :, None] * spread
        )
        self._root = roots(self.covariance)


def roots(matrices: Floats) -> Floats:
    """Return what `root` returns for each of the matrices [R, d, d]."""
    lower: Floats = matrices + FLATTEST * np.eye(matrices.shape[1])
    for k in range(lower.shape[1]):
        lower[:, k:, k] /= np.sqrt(np.maximum(lower[:, k, k], FLATTEST))[:, None]
        below = lower[:, k + 1 :, k]
        lower[:, k + 1 :, k + 1 :] -= below[:, :, None] * below[:, None]
    return np.tril(lower)


def solved_all(lower: Floats, right: Floats) -> Floats:
    """Return what `solved` returns for each of the triangles [R, d, d] and right sides [R, d]."""
    x = right.copy()
    for k in range(x.shape[1]):
        x[:, k] /= lower[:, k, k]
        x[:, k + 1 :] -= lower[:, k + 1 :, k] * x[:, k : k + 1]
    return x
