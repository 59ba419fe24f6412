"""Particle swarm optimisation (Kennedy and Eberhart 1995) with one swarm, or with many side by side."""

from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Literal

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.errors import check_range

Some = Ints | EllipsisType
"""The indices of some of the swarms that search side by side, or `...` for all of them."""


@dataclass(frozen=True, kw_only=True)
class PSO:
    """Settings of a swarm; the factors are those of Clerc and Kennedy (2002)."""

    particles: int = 100
    """number of particles"""
    inertia: float = 0.72981
    """share of its velocity that a particle keeps"""
    cognitive: float = 1.49618
    """pull towards a particle's own best position"""
    social: float = 1.49618
    """pull towards the best position of its neighbourhood"""
    neighbourhood: Literal["ring", "global"] = "ring"
    """particles that inform each other; in a ring news spreads slowly, so that the swarm explores longer"""
    reach: int = 1
    """neighbours on each side in a ring"""
    fastest: float = 0.5
    """largest step, as a share of each parameter's range"""

    def __post_init__(self) -> None:
        check_range(self, "particles", 1)
        check_range(self, "reach", 0, 1_000)
        check_range(self, "inertia cognitive social fastest", 0, 100)


class Swarm:
    """A swarm within bounds: `ask` for positions, evaluate them, `tell` their costs, and repeat.

    One swarm has arrays [particles, d]. Many swarms can search side by side in arrays [particles, swarms, d];
    they share the random numbers, so that the result of a swarm does not depend on the swarms beside it.
    """

    def __init__(
        self,
        bounds: Floats,
        settings: PSO,
        *,
        rng: np.random.Generator,
        begin: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Place the particles.

        Args:
            bounds: [d, 2] the lowest and the highest value of each parameter.
            settings: The number of particles and the factors of their moves.
            rng: The source of all random numbers of the swarm.
            begin: Positions and velocities to begin with, [particles, d] of one swarm or
                [particles, swarms, d] of many; if not given, one swarm begins anywhere within the bounds.
        """
        self.bounds = np.asarray(bounds, np.float64)
        self.settings = settings
        self.rng = rng
        positions, velocities = begin or self._anywhere()
        self.positions: Floats = positions
        self.velocities: Floats = velocities
        self.best_positions: Floats = positions.copy()
        """[particles, …, d] best position of each particle"""
        self.best_costs: Floats = np.full(positions.shape[:-1], np.inf)
        """[particles, …] their costs"""

    def _anywhere(self) -> tuple[Floats, Floats]:
        low, high = self.bounds.T
        shape = (self.settings.particles, len(low))
        positions = self.rng.uniform(low, high, shape)
        return positions, self.rng.uniform(-1, 1, shape) * self.settings.fastest * (high - low)

    def ask(self, swarms: Some = ...) -> Floats:
        """Return the positions [particles, …, d] of some swarms, or of all, to be evaluated."""
        return self.positions[:, swarms].copy()

    def tell(self, costs: Floats, swarms: Some = ...) -> None:
        """Take the costs [particles, …] of the positions, and move these swarms. NaN counts as infinite."""
        costs = np.where(np.isnan(costs), np.inf, costs)
        best = self.best_costs[:, swarms]
        better = costs < best
        self.best_costs[:, swarms] = np.where(better, costs, best)
        self.best_positions[:, swarms] = np.where(
            better[..., None], self.positions[:, swarms], self.best_positions[:, swarms]
        )
        self._move(swarms)

    @property
    def best(self) -> tuple[Floats, float]:
        """The best position of one swarm so far, and its cost."""
        leader = int(np.argmin(self.best_costs))
        return self.best_positions[leader].copy(), float(self.best_costs[leader])

    def summits(self) -> Floats:
        """Return the positions [n, d] of one swarm that are the best of their neighbourhood, best first."""
        leading = np.flatnonzero(self.best_costs == self.best_costs[self.leaders()])
        return self.best_positions[leading[np.argsort(self.best_costs[leading], kind="stable")]]

    def ranked(self) -> Floats:
        """Return the best positions [particles, …, d] of each swarm, best first; equals keep their order."""
        order = np.argsort(self.best_costs, axis=0, kind="stable")
        return _picked(self.best_positions, order)

    def _move(self, swarms: Some) -> None:
        settings, (low, high) = self.settings, self.bounds.T
        positions, best = self.positions[:, swarms], self.best_positions[:, swarms]
        shared = [1] * (positions.ndim - 2)
        own, social = self.rng.random((2, len(positions), *shared, positions.shape[-1]))
        pull = (
            best - positions
        )  # towards its own best, then its leader's; in place, as there may be many swarms
        pull *= settings.cognitive * own
        social_pull = _picked(best, self.leaders(swarms))
        social_pull -= positions
        social_pull *= settings.social * social
        pull += social_pull
        pull += settings.inertia * self.velocities[:, swarms]
        fastest = settings.fastest * (high - low)
        velocities = np.clip(pull, -fastest, fastest, out=pull)
        moved = positions + velocities
        inside = np.clip(moved, low, high)
        self.positions[:, swarms] = inside
        self.velocities[:, swarms] = np.where(moved == inside, velocities, 0.0)  # bounds stop particles

    def leaders(self, swarms: Some = ...) -> Ints:
        """Return, for each particle [particles, …], the best particle of its neighbourhood."""
        costs = self.best_costs[:, swarms]
        if self.settings.neighbourhood == "global":
            return np.broadcast_to(np.argmin(costs, axis=0), costs.shape)
        offsets = np.arange(-self.settings.reach, self.settings.reach + 1)
        ring = (np.arange(len(costs))[:, None] + offsets) % len(costs)
        nearest = np.argmin(costs[ring], axis=1)
        return np.take_along_axis(ring, nearest.reshape(len(ring), -1), axis=1).reshape(costs.shape)

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain data: arrays, and the generator's state."""
        return {
            "positions": self.positions.copy(),
            "velocities": self.velocities.copy(),
            "best_positions": self.best_positions.copy(),
            "best_costs": self.best_costs.copy(),
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where the state was taken."""
        self.positions, self.velocities = state["positions"].copy(), state["velocities"].copy()
        self.best_positions, self.best_costs = state["best_positions"].copy(), state["best_costs"].copy()
        self.rng.bit_generator.state = state["rng"]


def _picked(positions: Floats, particles: Ints) -> Floats:
    """Return, in each swarm, the positions [particles, …, d] of these particles [particles, …]."""
    rest = np.indices(particles.shape, sparse=True)[1:]
    picked: Floats = positions[particles, *rest]
    return picked
