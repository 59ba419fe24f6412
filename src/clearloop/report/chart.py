"""The front as a chart of a web page: where every point, tick and label goes, in a box of fixed size.

Both axes are logarithmic where that is possible: penalties and complexities of one front span decades.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clearloop.report.sentences import cost_of, format_penalty
from clearloop.report.style import BLUE, GREEN, ORANGE, PURPLE, RED
from clearloop.runs import Front

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 44
COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE)
SHAPES = ("circle", "square", "triangle", "diamond", "cross")
MOST_TICKS = 6
DECADE = 10.0


@dataclass(frozen=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    first: float
    last: float

    @classmethod
    def of(cls, values: Sequence[float], first: float, last: float) -> "Scale":
        """With some air on both sides."""
        low, high = min(values), max(values)
        if low <= 0:  # no logarithm
            low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
            return cls(low, high, first, last)
        return cls(low / 1.12, high * 1.12, first, last)

    @property
    def _decades(self) -> bool:
        return self.low > 0

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(x) if self._decades else x for x in (self.low, self.high, value))
        return round(self.first + (self.last - self.first) * (value - low) / (high - low), 1)

    def ticks(self, *, whole: bool = False) -> list[float]:
        """Round numbers, or even `whole` ones; a few."""
        from matplotlib.ticker import MaxNLocator

        if not self._decades or self.high < DECADE * self.low:
            ticks = MaxNLocator(MOST_TICKS, integer=whole).tick_values(self.low, self.high)
            return [float(tick) for tick in ticks if self.low <= tick <= self.high]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            ticks = [digit * 10.0**power for power in powers for digit in digits]
            inside = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(inside) <= MOST_TICKS + 2:
                break
        return inside


def chart(front: Front) -> dict[str, Any]:
    """Places and words for the template."""
    costs = [cost_of(entry) for entry in front.entries]
    known = [row for row in front.published if row.in_paper]
    tested = front.entries[0].penalty_system is not None
    lines = [(row.penalty_system if tested else row.penalty_model) for row in known]
    x = Scale.of([entry.complexity for entry in front.entries], LEFT, WIDTH - RIGHT)
    y = Scale.of([*costs, *lines, *(entry.penalty_model for entry in front.entries)], HEIGHT - BOTTOM, TOP)
    methods = {
        name: {"colour": COLOURS[n % len(COLOURS)], "shape": SHAPES[(n + n // len(COLOURS)) % len(SHAPES)]}
        for n, name in enumerate(dict.fromkeys(entry.method for entry in front.entries))
    }
    points = [
        {
            "id": entry.controller,
            "x": x(entry.complexity),
            "y": y(cost),
            "promised": y(entry.penalty_model) if tested else None,
            **methods[entry.method],
            "pick": i == front.pick,
            "label": f"{entry.controller}: {entry.method}, complexity {entry.complexity}, penalty"
            f" {format_penalty(cost)}",
        }
        for i, (entry, cost) in enumerate(zip(front.entries, costs, strict=True))
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "points": points,
        "x_ticks": [{"at": x(tick), "text": f"{tick:.10g}"} for tick in x.ticks(whole=True)],
        "y_ticks": [{"at": y(tick), "text": f"{tick:.10g}"} for tick in y.ticks()],
        "known": [
            {"y": y(line), "title": f"{row.title} {format_penalty(line)}"}
            for row, line in zip(known, lines, strict=True)
        ],
        "methods": [{"name": name, **look} for name, look in methods.items()],
        "where": "on the plant" if tested else "as promised by the model",
    }
