"""Coverage, grids and paired errors on a plant that anybody can compute: an integrator."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.diagnosis.response import BEFORE, _crossing, _middle, _rise, _settling, measure
from clearloop.diagnosis.robustness import DISTURBANCES, Region, _standing, cover, make_grid
from clearloop.task import Task

from .plants import FIRST_ORDER, SPRING, integrating


def region(low: float, high: float, task: Task = FIRST_ORDER) -> Region:
    """A log of 1,000 evenly spaced states, in episodes of ten rows."""
    states = np.linspace(low, high, 1_000)[np.random.default_rng(0).permutation(1_000), None]
    batch = Batch(
        task.columns, states, np.zeros((1_000, 1)), np.arange(1_000) // 10, np.zeros(1_000, np.bool_)
    )
    return Region(task, batch, rng=np.random.default_rng(0))


def test_distances_are_in_deviations_of_each_state() -> None:
    rows = np.random.default_rng(0).permutation(1_000)
    states = np.column_stack([np.linspace(0, 1, 1_000)[rows], np.linspace(0, 500, 1_000)[rows]])
    batch = Batch(
        SPRING.columns, states, np.zeros((1_000, 1)), np.arange(1_000) // 10, np.zeros(1_000, np.bool_)
    )
    known = Region(SPRING, batch, rng=np.random.default_rng(0))
    away = np.array([[1.0 + np.sqrt(1 / 12), 500.0], [1.0, 500.0 * (1.0 + np.sqrt(1 / 12))]])
    assert known.distances(away) == pytest.approx([1.0, 1.0], rel=0.03)


def test_disturbances_are_as_large_as_they_are_called() -> None:
    for one in DISTURBANCES:
        if one.name.startswith("gain"):
            assert one.gain == pytest.approx(1 + int(one.name.split()[1]) / 100)
        elif one.name.startswith("sensor noise"):
            assert one.noise == int(one.name.split()[2]) / 100
        else:
            assert (one.name, one.late) == ("delay of one step", 1)


def test_of_an_even_number_of_members_the_larger_in_the_middle_counts() -> None:
    assert _middle([3.0, 1.0, 2.0]) == 2.0
    assert _middle([4.0, 1.0, 3.0, 2.0]) == 3.0


def test_what_leaves_the_logged_region_is_counted() -> None:
    """y = 2 + (y0 - 2) / 2ⁿ: from 7 and 11 it comes down, at 2 it stays within the log from 1 to 4."""
    known, starts = region(1.0, 4.0), np.array([[7.0], [11.0], [2.0]])
    task = FIRST_ORDER.model_copy(update={"horizon": 8})
    found = cover(integrating(5.0), task, known, starts=starts)
    courses = 2 + (starts - 2) / 2.0 ** np.arange(8)
    assert found.visited == 24
    outside = known.distances(courses.reshape(-1, 1)).reshape(3, 8) > known.distance
    assert outside.sum() >= np.sum(courses > 4.01) == 5
    assert found.outside == pytest.approx(outside.mean())
    assert found.courses == pytest.approx(outside.any(axis=1).mean()) == pytest.approx(2 / 3)
    assert found.beyond == pytest.approx(np.array([[0.0, np.mean(courses > known.range[0, 1])]]))
    assert found.farthest == pytest.approx(
        (11 - known.range[0, 1]) / np.std(np.linspace(1, 4, 1_000)), rel=0.02
    )
    assert found.distance == known.distance
    assert found.to_dict()["beyond"]["y"][0] == 0.0


def test_a_state_at_the_edge_of_the_log_is_within_its_range() -> None:
    known = region(1.0, 4.0)
    task = FIRST_ORDER.model_copy(update={"horizon": 1})
    found = cover(integrating(0.0), task, known, starts=known.range.T.copy())
    assert found.beyond.tolist() == [[0.0, 0.0]]
    assert (found.outside, found.farthest) == (0.0, 0.0)


def test_after_a_failure_nothing_is_visited() -> None:
    """Pushed away, it grows by half in each step, and has failed beyond 100."""
    task = FIRST_ORDER.model_copy(update={"horizon": 40})
    found = cover(integrating(-5.0), task, region(1.0, 4.0), starts=np.array([[12.0], [2.0]]))
    before = int(np.ceil(np.log(98 / 10) / np.log(1.5)))
    assert found.visited == before + 40  # the one at the setpoint stays there


def test_only_a_symmetric_plant_has_a_known_mirror_image() -> None:
    known, mirrored = region(1.0, 4.0), region(1.0, 4.0, SYMMETRIC)
    assert known.distances(np.array([[-3.0]])) > known.distance
    assert mirrored.distances(np.array([[-3.0]])) <= mirrored.distance
    assert known.range[0, 0] > 0 > mirrored.range[0, 0]


SYMMETRIC = Task.from_dict(
    FIRST_ORDER.model_dump(mode="json", exclude_none=True)
    | {"symmetric": True, "states": {"y": {"unit": "K"}}}
)


def test_about_one_state_in_a_hundred_is_outside_its_own_log() -> None:
    known = region(0.0, 1.0)
    fresh = np.random.default_rng(1).uniform(0, 1, (2_000, 1))
    assert 0.0 < np.mean(known.distances(fresh) > known.distance) < 0.04
    assert known.distance < 0.02


def test_what_stands_still() -> None:
    states = np.array([[[0.0, 1.0], [0.0, 2.0], [0.0, 2.0], [0.0, 2.0]], [[0.0, 1.0]] * 3 + [[1.0, 1.0]]])
    assert _standing(states).tolist() == [[False, True, True], [False, False, False]]


def test_the_grid_is_in_the_middles_of_its_cells() -> None:
    axes, starts = make_grid(SPRING, 4)
    assert axes["place"].tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert axes["speed"].tolist() == [-1.5, -0.5, 0.5, 1.5]
    assert starts[:5].tolist() == [[-0.75, -1.5], [-0.75, -0.5], [-0.75, 0.5], [-0.75, 1.5], [-0.25, -1.5]]


def test_crossings_and_settling_of_courses_that_are_written_down() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    assert _crossing(times, np.array([0.5, 1.0, 1.0, 1.0]), 0.1) == 0.0  # there from the beginning
    assert _crossing(times, np.array([0.0, 0.0, 1.0, 1.0]), 0.25) == 1.25
    assert _crossing(times, np.array([0.0, 0.2, 0.2, 0.9]), 0.9) == 3.0
    assert _crossing(times, np.zeros(4), 0.1) == np.inf
    assert _rise(times, np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(0.8)  # within the last step
    assert _settling(times, np.array([1.0, 0.05, 0.0, 0.05])) == 1.0
    assert _settling(times, np.array([1.0, 0.05, 0.06, 0.0])) == 3.0
    assert _settling(times, np.array([0.0, 0.0, 0.0, 0.0])) == 0.0
    assert _settling(times, np.array([0.0, 0.0, 0.0, 0.06])) == np.inf


def test_a_response_in_numbers() -> None:
    """One step the wrong way by 1, then beyond by half a degree, then there."""
    course = np.full(41, 2.0)
    course[BEFORE + 1 :] = [1.0, 4.5, *[4.0] * 28]
    found = measure(FIRST_ORDER, 0, 2.0, 2.0, course[None], np.zeros((1, 40, 1)))
    assert [found.overshoot, found.undershoot] == pytest.approx([25.0, 50.0])
    assert found.settling_time == pytest.approx(0.3)
    assert found.integral_error == pytest.approx(0.1 * (2.0 / 2 + 3.0 + 0.5))
    assert (found.unit, found.state, found.size) == ("K", "y", 2.0)
    assert found.setpoints[BEFORE - 1 : BEFORE + 1].tolist() == [2.0, 4.0]
    lower = replace(found, settling_time=None)
    assert repr(lower) == "step of y by 2 K: does not settle, overshoot 25 %"
