"""Keeping time: steps at the moments at which they are due, by a clock that only goes forward."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

MOST_BEHIND = 8  # steps that are caught up with; beyond that, time is let go
WATCHED = 5.0  # seconds


class Pacer:
    """Says how long to wait for the next step.

    What comes a little late is made up for, so that the rate holds; what comes very late is not, so that a
    slow machine shows slow motion, and never steps in order to catch up with steps.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._due = clock()
        self._steps: deque[tuple[float, bool]] = deque()

    def wait(self, interval: float) -> float:
        """Seconds until the next step, which is `interval` after the last one; 0 if it is due."""
        now = self._clock()
        self._due += interval
        late = now - self._due
        self._steps.append((now, late > interval / 2))
        while self._steps[0][0] < now - WATCHED:
            self._steps.popleft()
        if late > MOST_BEHIND * interval:
            self._due = now
        return max(self._due - now, 0.0)

    @property
    def late(self) -> float:
        """The share of the last seconds' steps that came more than half an interval late."""
        return sum(late for _, late in self._steps) / max(len(self._steps), 1)

    async def pause(self, interval: float) -> None:
        """Sleep until the next step; others get their turn even if it is due."""
        await asyncio.sleep(self.wait(interval))
