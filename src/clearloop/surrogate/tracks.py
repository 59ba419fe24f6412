"""The two ways to learn a model: as we know to be better, and as published."""

from dataclasses import dataclass, field
from typing import Final

from clearloop.errors import ClearloopError
from clearloop.networks import Training


@dataclass(frozen=True, kw_only=True)
class Track:
    """What a surrogate is learned with. `dataclasses.replace(BEST, search=2)` is another one."""

    name: str = "best"
    """what people call it"""
    search: int = 5
    """members to search controllers with"""
    judge: int = 3
    """members that only judge what the search found; 0: those that it was found with do"""
    training: Training = field(default_factory=Training)
    """of every network"""
    held_out: float = 0.1
    """share of the transitions, in whole episodes, that tells when to stop"""
    known_reward: bool = True
    """the task's formula is the reward, where there is one"""
    absorbing: bool = True
    """what has failed stays where it is and goes on paying"""
    discern: bool = True
    """finds the states that failure alters (`failure.py`): the others are learned from failing steps, too,
    and a learned reward looks at the whole step without them. If false, no state is learned from failing
    steps, and a learned reward looks at the next state"""
    noise: float = 0.01
    """of what networks leave unexplained of a state's change, as a share of its variance: more is noise, and
    drawn in rollouts, too; less is an error of the networks"""
    reach: float | None = 1.0
    """how far a state may leave its range in the log to either side, in ranges; None: at will. Out there,
    networks only guess, and what runs off to infinity on one model would outweigh everything else"""
    sheets: bool = True
    """where states never leave a sheet (`sheets.py`), networks learn the way back to it"""
    mirrored: bool = True
    """a symmetric plant is also learned from the mirror image of every transition"""

    def __post_init__(self) -> None:
        if self.search < 1 or self.judge < 0:
            raise ClearloopError(
                f"a surrogate needs a member or more to search with, and 0 or more to judge, "
                f"not {self.search} and {self.judge}"
            )

    @property
    def members(self) -> int:
        return self.search + self.judge


BEST: Final = Track()

PUBLISHED: Final = Track(
    name="published",
    search=1,
    judge=0,
    known_reward=False,
    absorbing=False,
    discern=False,
    noise=1.0,
    reach=None,
    sheets=False,
    mirrored=False,
)
"""Sec. 4.2 of the paper, which does not say what becomes of failing steps: the dynamics do without them."""

TRACKS: Final = {track.name: track for track in (BEST, PUBLISHED)}
