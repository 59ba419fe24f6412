"""Inside and outside of what was logged."""

import numpy as np
import pytest

from clearloop.controllers import Equation, Linear
from clearloop.diagnosis.robustness import Region, cover
from clearloop.task import Task

from .plants import FIRST_ORDER, SPRING, integrating, log


def region(task: Task = SPRING, reach: float = 3.0, rows: int = 4_000) -> Region:
    return Region(task, log(task, reach, rows), rng=np.random.default_rng(0))


def test_about_one_in_a_hundred_states_like_the_logged_is_outside() -> None:
    fresh = np.random.default_rng(9).uniform(-3, 3, (20_000, 2))
    known = region()
    assert 0.003 < np.mean(known.distances(fresh) > known.distance) < 0.03


def test_a_hole_in_the_log_is_outside_though_a_box_holds_it() -> None:
    batch = log(SPRING, rows=4_000)
    ring = batch.states / np.linalg.norm(batch.states, axis=1, keepdims=True)
    known = Region(SPRING, type(batch)(batch.columns, ring, batch.actions, batch.episodes, batch.terminal),
                   rng=np.random.default_rng(0))  # fmt: skip
    assert (known.distances(np.zeros((1, 2))) > known.distance).all()
    assert (known.range[:, 0] < 0).all()
    assert (known.range[:, 1] > 0).all()


def test_units_do_not_matter() -> None:
    batch = log(SPRING)
    metric = type(batch)(
        batch.columns, batch.states * [1000.0, 1e-6], batch.actions, batch.episodes, batch.terminal
    )
    one, other = (Region(SPRING, b, rng=np.random.default_rng(0)) for b in (batch, metric))
    assert one.distance == pytest.approx(other.distance)
    points = np.random.default_rng(1).normal(0, 3, (50, 2))
    np.testing.assert_allclose(one.distances(points), other.distances(points * [1000.0, 1e-6]))


def test_the_mirror_image_of_a_symmetric_plant_is_known() -> None:
    batch = log(SPRING, rows=1_000)
    half = type(batch)(batch.columns, np.abs(batch.states), batch.actions, batch.episodes, batch.terminal)
    mirrored = SPRING.model_copy(update={"symmetric": True})
    far = np.array([[-2.0, -2.0]])
    for task, outside in ((SPRING, True), (mirrored, False)):
        known = Region(task, half, rng=np.random.default_rng(0))
        assert bool(known.distances(far)[0] > known.distance) is outside


def test_a_controller_that_stays_home_and_one_that_does_not() -> None:
    starts = SPRING.scoring_starts(32)
    home = cover(Linear(gains={"push": {"speed": -3.0}}), SPRING, region(), starts=starts)
    away = cover(Linear(gains={"push": {"speed": 3.0}}), SPRING, region(), starts=starts)
    assert home.outside < 0.01
    assert home.visited == 32 * 40
    assert away.outside > 0.3
    assert away.courses > 0.9
    assert away.farthest > away.distance
    assert away.beyond.shape == (2, 2)
    assert (away.beyond > 0).all()
    assert (home.beyond == 0).all()


def test_what_has_failed_visits_nothing_any_more() -> None:
    """With y' = 2 y from 30, 60 is the last before 100 is passed: two states of the forty."""
    known = region(FIRST_ORDER, reach=50.0)
    fleeing = Equation(outputs={"u": "10*(y + y.setpoint)"})
    found = cover(fleeing, FIRST_ORDER, known, starts=np.array([[30.0], [0.0]]))
    assert found.visited == 2 + 40
    assert found.outside == pytest.approx(1 / 42)
    assert found.courses == 0.5
    assert found.beyond.tolist() == [[0.0, pytest.approx(1 / 42)]]


def test_a_loop_at_rest_goes_on_visiting() -> None:
    found = cover(integrating(10.0), FIRST_ORDER, region(FIRST_ORDER), starts=np.array([[2.0]]))
    assert found.visited == 40
    assert found.outside == 0.0
