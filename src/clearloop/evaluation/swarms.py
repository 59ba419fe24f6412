"""Particle swarms for many problems at once, all of one size (Kennedy and Eberhart 1995).

They draw the same random numbers: what one of them finds does not depend on the others beside it.
"""

import numpy as np

from clearloop.data.cells import Floats, Ints

INERTIA, PULL = 0.72981, 1.49618  # Clerc and Kennedy 2002
FASTEST = 0.5  # the largest step, as a share of a parameter's range


class Swarms:
    """P particles in each of N swarms. Parameters are shares of their ranges: from 0 to 1."""

    def __init__(self, positions: Floats, velocities: Floats, rng: np.random.Generator) -> None:
        """`positions` [P, N, d] to begin from, `velocities` [P, N, d]."""
        self.positions, self.velocities, self.rng = positions, velocities, rng
        self.best_positions = positions.copy()
        """[P, N, d] the best that each particle has seen"""
        self.best_costs: Floats = np.full(positions.shape[:2], np.inf)
        """[P, N]"""

    def tell(self, costs: Floats, swarms: Ints) -> None:
        """[P, n] what the particles of some swarms cost where they are; NaN: infinitely much."""
        costs = np.where(np.isnan(costs), np.inf, costs)
        better = costs < self.best_costs[:, swarms]
        self.best_costs[:, swarms] = np.where(better, costs, self.best_costs[:, swarms])
        self.best_positions[:, swarms] = np.where(
            better[..., None], self.positions[:, swarms], self.best_positions[:, swarms]
        )

    def move(self, swarms: Ints) -> None:
        """The particles of some swarms, each towards its own best and that of its neighbours in a ring."""
        positions, best = self.positions[:, swarms], self.best_positions[:, swarms]
        own, social = self.rng.random((2, len(positions), 1, positions.shape[2]))
        pull = own * (best - positions) + social * (self._leaders(swarms) - positions)
        velocities = np.clip(INERTIA * self.velocities[:, swarms] + PULL * pull, -FASTEST, FASTEST)
        moved = positions + velocities
        inside = np.clip(moved, 0.0, 1.0)
        self.positions[:, swarms] = inside
        self.velocities[:, swarms] = np.where(moved == inside, velocities, 0.0)  # walls stop

    def _leaders(self, swarms: Ints) -> Floats:
        """[P, n, d] the best position of each particle's neighbourhood: itself, and one on each side."""
        costs, positions = self.best_costs[:, swarms], self.best_positions[:, swarms]
        least, leaders = costs, positions
        for side in (1, -1):
            theirs = np.roll(costs, side, axis=0)
            better = theirs < least
            least = np.where(better, theirs, least)
            leaders = np.where(better[..., None], np.roll(positions, side, axis=0), leaders)
        return leaders

    def sorted(self) -> Floats:
        """[P, N, d] the particles' best positions, from each swarm's best on; equals keep their order."""
        order = np.argsort(self.best_costs, axis=0, kind="stable")
        return np.take_along_axis(self.best_positions, order[..., None], axis=0)
