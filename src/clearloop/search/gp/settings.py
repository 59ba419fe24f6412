"""How an evolution breeds: sizes and shares."""

from dataclasses import dataclass
from itertools import pairwise

from clearloop.errors import ClearloopError, check_range


@dataclass(frozen=True, kw_only=True)
class GP:
    """Settings. What the shares of crossover … simplification leave over is point mutation."""

    islands: tuple[int, ...] = (11, 15, 21, 27, 33, 11, 15, 21, 27, 33)
    """the largest complexity that each allows. Good programs move on to the next, if it allows more; islands
    between which programs move are a ladder"""
    population: int = 40
    """structures on each island"""
    offspring: int = 64
    """children on each island in every round"""
    tournament: int = 3
    crossover: float = 0.3
    fresh: float = 0.05
    subtree: float = 0.15
    insertion: float = 0.2
    removal: float = 0.1
    constants: float = 0.05
    tries: int = 2
    """how often a structure may be promoted on an island: it is new ones that count"""
    patience: int = 12
    """rounds without progress after which a ladder starts anew, while the search explores"""

    def __post_init__(self) -> None:
        if not self.islands:
            raise ClearloopError("gp: islands: expected one or more")
        check_range(self, "islands population offspring tournament tries patience", 1)
        check_range(self, "crossover fresh subtree insertion removal constants", 0, 1)

    @property
    def ladders(self) -> list[range]:
        """The numbers of the islands of each."""
        limits = self.islands
        first = [n for n in range(len(limits)) if n == 0 or limits[n] <= limits[n - 1]]
        return [range(start, stop) for start, stop in pairwise((*first, len(limits)))]
