"""Particle swarm optimisation (Kennedy and Eberhart 1995), for whole swarms at once."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.errors import check_range


@dataclass(frozen=True, kw_only=True)
class PSO:
    """Settings of a swarm; the factors are those of Clerc and Kennedy (2002)."""

    particles: int = 100
    inertia: float = 0.72981
    cognitive: float = 1.49618
    """pull towards a particle's own best position"""
    social: float = 1.49618
    """pull towards the best position of its neighbourhood"""
    neighbourhood: Literal["ring", "global"] = "ring"
    """a ring spreads news slowly, which keeps the swarm apart for longer"""
    reach: int = 1
    """neighbours on each side in a ring"""
    fastest: float = 0.5
    """largest step, as a share of each parameter's range"""

    def __post_init__(self) -> None:
        check_range(self, "particles", 1)
        check_range(self, "reach", 0, 1_000)
        check_range(self, "inertia cognitive social fastest", 0, 100)


class Swarm:
    """Particles in a box. `ask`, run what it gives, `tell` what it cost, and again."""

    def __init__(self, bounds: Floats, settings: PSO, *, rng: np.random.Generator) -> None:
        """`bounds` [d, 2]: the lowest and the highest value of each parameter."""
        self.bounds = np.asarray(bounds, np.float64)
        self.settings = settings
        self.rng = rng
        low, high = self.bounds.T
        shape = (settings.particles, len(low))
        self.positions: Floats = rng.uniform(low, high, shape)
        self.velocities: Floats = rng.uniform(-1, 1, shape) * settings.fastest * (high - low)
        self.best_positions: Floats = self.positions
        """[particles, d] the best that each particle has seen"""
        self.best_costs: Floats = np.full(settings.particles, np.inf)

    def ask(self) -> Floats:
        """[particles, d] to be evaluated."""
        return self.positions.copy()

    def tell(self, costs: Floats) -> None:
        """[particles] what they cost; then everyone moves. What is not a number costs infinitely much."""
        costs = _known(costs)
        better = costs < self.best_costs
        self.best_costs = np.where(better, costs, self.best_costs)
        self.best_positions = np.where(better[:, None], self.positions, self.best_positions)
        self._move()

    @property
    def best(self) -> tuple[Floats, float]:
        """The best position so far, and its cost."""
        leader = int(np.argmin(self.best_costs))
        return self.best_positions[leader].copy(), float(self.best_costs[leader])

    def summits(self) -> Floats:
        """[n, d] the best positions that none in their neighbourhood is better than, the best first."""
        leading = np.flatnonzero(self.best_costs == self.best_costs[self.leaders()])
        return self.best_positions[leading[np.argsort(self.best_costs[leading], kind="stable")]]

    def _move(self) -> None:
        settings, (low, high) = self.settings, self.bounds.T
        own, social = self.rng.random((2, *self.positions.shape))
        pull = settings.cognitive * own * (self.best_positions - self.positions)
        pull += settings.social * social * (self.best_positions[self.leaders()] - self.positions)
        fastest = settings.fastest * (high - low)
        velocities = np.clip(settings.inertia * self.velocities + pull, -fastest, fastest)
        moved = self.positions + velocities
        self.positions = np.clip(moved, low, high)
        self.velocities = np.where(moved == self.positions, velocities, 0.0)  # walls stop who runs into them

    def leaders(self) -> NDArray[np.int64]:
        """[particles] for each the one in its neighbourhood whose best is best."""
        count = self.settings.particles
        if self.settings.neighbourhood == "global":
            return np.full(count, np.argmin(self.best_costs))
        offsets = np.arange(-self.settings.reach, self.settings.reach + 1)
        ring = (np.arange(count)[:, None] + offsets) % count
        leaders: NDArray[np.int64] = ring[np.arange(count), np.argmin(self.best_costs[ring], axis=1)]
        return leaders

    def state(self) -> dict[str, Any]:
        """Everything that changes, as plain data: arrays, and the generator's state."""
        return {
            "positions": self.positions,
            "velocities": self.velocities,
            "best_positions": self.best_positions,
            "best_costs": self.best_costs,
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on, to the bit, where the state was taken."""
        self.positions, self.velocities = state["positions"], state["velocities"]
        self.best_positions, self.best_costs = state["best_positions"], state["best_costs"]
        self.rng.bit_generator.state = state["rng"]


def _known(costs: Floats) -> Floats:
    return np.where(np.isnan(costs), np.inf, costs)
