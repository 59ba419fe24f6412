"""Figures of searches: their courses are in them."""

from pathlib import Path

import numpy as np
import pytest

from clearloop.figures.progress import Generation, draw_population, draw_progress
from clearloop.figures.style import save_figure
from clearloop.runs.learning import ProgressRow


def course(method: str, best: list[float], latest: list[float] | None = None) -> list[ProgressRow]:
    return [
        ProgressRow(method, 10 ** (n + 3), value, latest[n] if latest else None, 1, 0.1 * n)
        for n, value in enumerate(best)
    ]


ROWS = [
    *course("gprl", [19.0, 4.0, 2.9, 2.6]),
    *course("nfq", [15.0, 5.0, 5.0, 3.0], [15.0, 5.0, 9.0, 3.0]),
    *course("lqr", [3.1]),
]


def test_the_course_of_every_method_is_in_every_panel() -> None:
    figure = draw_progress(ROWS)
    upper, lower = figure.axes
    for axes in (upper, lower):
        drawn = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()}
        assert drawn["gprl"] == [19.0, 4.0, 2.9, 2.6]
        assert drawn["nfq"] == [15.0, 5.0, 5.0, 3.0]
        assert drawn["nfq, each round"] == [15.0, 5.0, 9.0, 3.0]
        assert drawn["lqr"] == [3.1, 3.1]
    assert lower.get_xlabel() == "steps of the model (number)"
    assert lower.get_xscale() == "log"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["gprl", "nfq", "nfq, each round", "lqr"]


@pytest.mark.parametrize(
    "rows", [ROWS[-1:], ROWS[:1], course("a $^", [np.inf, 3.0]), course("b", [-1.0] * 2)]
)
def test_extreme_courses_are_drawn(rows: list[ProgressRow], tmp_path: Path) -> None:
    figure = draw_progress(rows)
    save_figure(figure, tmp_path / "progress.png")
    assert figure.axes[-1].get_lines()


def test_a_population_is_its_best_its_median_and_how_much_was_evaluated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    generations = [Generation(1000 * n, 64 * n, 2 + 10 / n + rng.exponential(size=50)) for n in range(1, 20)]
    generations.append(Generation(20_000, 1280, np.array([np.inf])))
    figure = draw_population(generations)
    *panels, count = figure.axes
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in panels[-1].get_lines()}
    best = [g.penalties.min() for g in generations[:-1]]
    np.testing.assert_array_equal(drawn["best so far"][:-1], np.minimum.accumulate(best))
    np.testing.assert_allclose(
        drawn["median of the population"][:-1], [np.median(g.penalties) for g in generations[:-1]]
    )
    assert count.get_lines()[0].get_ydata()[-1] == 1280  # type: ignore[index]
    save_figure(figure, tmp_path / "population.png")
