"""The figure of a front: what is in it, and where."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text
from reproductions.front import draw_front

from clearloop.figures.style import save_figure
from clearloop.runs import Entry, Front, Judged, PublishedEntry

METHODS = ("gprl", "fpsrl", "a $ new^ one")
KNOWN = (
    PublishedEntry("gprl", "GPRL equation", 2.88, 2.903, 0.065, True),
    PublishedEntry("lqr", "LQR", 3.09, 3.116, 0.073, True),
    PublishedEntry("none", "no force", 19.9, 19.93, 0.999, False),
)


def front(penalties: list[float], *, plant: bool = True, known: tuple[PublishedEntry, ...] = ()) -> Front:
    """One controller after the other, each of another method and three symbols longer."""
    entries, judged = [], []
    for i, penalty in enumerate(penalties):
        number = f"{i + 1:03d}"
        system: tuple[Any, Any, Any] = (penalty, 0.1, 0.05) if plant else (None, None, None)
        entries.append(Entry(number, METHODS[i % 3], 3 * i + 3, 0.98 * penalty, 0.1, *system, "69.8*theta"))
        judged.append(Judged(number, penalty, 0.1, penalty - min(penalties), 0.02))
    return Front(tuple(entries), tuple(judged), known)


def markers(axes: Any) -> set[tuple[float, float]]:
    return {
        (x, y)
        for line in axes.get_lines()
        if line.get_marker() in ("o", "s", "D")
        for x, y in zip(np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata()), strict=True)
    }


def test_good_ones_have_a_panel_of_their_own_and_each_point_is_drawn_once() -> None:
    shown = front([19.0, 6.0, 3.1, 2.8], known=KNOWN)
    upper, lower = draw_front(shown).axes
    top = lower.get_ylim()[1]
    assert 3.2 < top < 5.88 * 1.1
    assert lower.get_yscale() == "linear"
    assert upper.get_yscale() == "log"
    costs = {(e.complexity, p) for e in shown.entries for p in (e.penalty_model, e.penalty_system)}
    assert markers(lower) == {(x, y) for x, y in costs if y is not None and y <= top}
    assert markers(upper) == {(x, y) for x, y in costs if y is not None and y > top}


def test_one_panel_where_nothing_is_far_from_the_best() -> None:
    (axes,) = draw_front(front([3.2, 3.0, 2.8])).axes
    low, high = axes.get_ylim()
    assert low < 0.98 * 2.8 - 0.1
    assert high > 3.2 + 0.1


def test_published_controllers_are_lines_with_names_that_do_not_overlap() -> None:
    close = tuple(replace(KNOWN[0], title=f"number {n}", penalty_system=2.9 + 0.001 * n) for n in range(5))
    figure = draw_front(front([3.2, 2.8], known=close))
    (axes,) = figure.axes
    names = [text.get_text() for text in axes.texts]
    assert names == [f"number {n} 2.90" for n in range(5)]
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without its line
    assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))
    assert sum(line.get_linestyle() == "--" for line in axes.get_lines()) == 5


def test_the_legend_names_methods_and_the_pick_is_in_a_ring() -> None:
    shown = front([3.2, 3.0, 2.8])
    figure = draw_front(replace(shown, published=KNOWN[:1]))
    (legend,) = figure.legends
    said = [text.get_text() for text in legend.get_texts()]
    roles = ["on the plant, ± standard error", "promised by the model", "the pick", "published, on the plant"]
    assert said == [*METHODS, *roles]
    (ring,) = [line for line in figure.axes[0].get_lines() if line.get_markersize() == 13]
    pick = shown.entries[shown.pick]
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (pick.complexity, pick.penalty_system)  # type: ignore[index]


@pytest.mark.parametrize("penalties", [[2.5], [1e9, 3.0], [-2.0, -3.0], [0.0, 0.0], [1e-8, 5.0, 1e-9]])
@pytest.mark.parametrize("plant", [True, False])
def test_extreme_fronts_are_drawn(penalties: list[float], plant: bool, tmp_path: Path) -> None:
    figure = draw_front(front(penalties, plant=plant))
    save_figure(figure, tmp_path / "front.png")
    points = set().union(*(markers(axes) for axes in figure.axes))
    assert {x for x, _ in points} == {3 * i + 3 for i in range(len(penalties))}


def test_complexities_far_apart_are_on_a_logarithmic_axis() -> None:
    shown = front([3.2, 2.8])
    network = replace(shown.entries[1], complexity=561)
    (axes,) = draw_front(replace(shown, entries=(shown.entries[0], network))).axes
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "complexity (symbols, weighted; no unit)"


def test_the_same_front_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_figure(draw_front(front([19.0, 3.0, 2.8], known=KNOWN)), tmp_path / f"{name}.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
