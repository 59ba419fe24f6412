"""The trials of a tuning: kept as they were, and drawn around the critical gain."""

from pathlib import Path

import numpy as np

from clearloop.figures.progress import SHOWN, draw_tuning
from clearloop.methods.method import Trial
from clearloop.runs import RunDirectory
from clearloop.runs.learning import read_tuning, write_tuning
from tests.controllers.kinds import CARTPOLE


def make_trials(state: str, ratios: list[float]) -> list[Trial]:
    """Gains of 1, 2, 3 …; what grows by a ratio in each period of ten steps."""
    steps = np.arange(51)
    return [
        Trial(state, "force", float(n), 10.0, ratio, 0.1 * np.cos(steps * 0.2 * np.pi) * n, steps[:-1] / 10)
        for n, ratio in enumerate(ratios, 1)
    ]


TRIALS = [*make_trials("theta", [0.5, 0.7, 0.9, 1.02, 1.4, 2.0, 3.0]), *make_trials("rho", [np.nan, 1.1])]


def test_they_are_read_back_as_they_were(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert read_tuning(run) == []
    write_tuning(run, TRIALS)
    found = read_tuning(run)
    assert len(found) == len(TRIALS)
    for course, trial in zip(found, TRIALS, strict=True):
        assert (course.first.input, course.first.gain) == (trial.input, trial.gain)
        assert course.first.ratio == (None if np.isnan(trial.ratio) else trial.ratio)
        np.testing.assert_array_equal(course.errors, trial.errors[:-1])
        np.testing.assert_array_equal(course.actions, trial.actions)


def test_gains_around_the_critical_one_are_drawn(tmp_path: Path) -> None:
    write_tuning(RunDirectory(tmp_path), TRIALS)
    figure = draw_tuning(read_tuning(RunDirectory(tmp_path)), CARTPOLE)
    panels = np.reshape(np.array(figure.axes), (2, SHOWN))
    titles = [panel.get_title() for panel in panels[0]]
    assert [title.split("\n")[0] for title in titles] == [
        "gain 2", "gain 3", "gain 4, critical", "gain 5", "gain 6",
    ]  # fmt: skip
    drawn = panels[0, 2].get_lines()[0].get_ydata()
    np.testing.assert_array_equal(drawn, TRIALS[3].errors[:-1])
    assert panels[0, 0].get_ylabel() == "error of theta (rad)\nby force"
    assert [panel.axison for panel in panels[1]] == [True, True, False, False, False]
    assert "no oscillation" in panels[1, 0].get_title()
