"""Which starts are saved."""

import numpy as np
import pytest

from clearloop.diagnosis.robustness import make_grid, map_starts
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS

from .plants import FIRST_ORDER, SPRING, integrating


def test_a_grid_covers_the_box_with_cells() -> None:
    axes, starts = make_grid(CARTPOLE, cells=3)
    assert list(axes) == ["theta", "rho"]
    np.testing.assert_allclose(axes["theta"], [-0.4, 0.0, 0.4])
    np.testing.assert_allclose(axes["rho"], [-1.0, 0.0, 1.0], atol=1e-15)
    assert starts.shape == (9, 4)
    np.testing.assert_allclose(starts[1], [-0.4, 0, 0, 0], atol=1e-15)  # the second axis runs first
    np.testing.assert_allclose(starts[3], [0, 0, -1, 0], atol=1e-15)


def test_states_beyond_the_second_stand_in_the_middle() -> None:
    tables = CARTPOLE.model_dump(mode="json", exclude_none=True)
    box = {"theta": [-0.1, 0.1], "theta_dot": [-1.0, 1.0], "rho": [0.0, 1.0]}
    axes, starts = make_grid(Task.from_dict(tables | {"starts": box}), cells=2)
    assert list(axes) == ["theta", "theta_dot"]
    assert (starts[:, 2] == 0.5).all()


def test_one_free_state_is_a_line_and_none_a_point() -> None:
    axes, starts = make_grid(FIRST_ORDER, cells=5)
    assert starts[:, 0].tolist() == axes["y"].tolist() == [-8, -4, 0, 4, 8]
    tables = SPRING.model_dump(mode="json", exclude_none=True)
    axes, starts = make_grid(Task.from_dict(tables | {"starts": {"place": [0.5, 0.5]}}))
    assert axes == {}
    assert starts.tolist() == [[0.5, 0.0]]


def test_scores_are_those_of_evaluate() -> None:
    found = map_starts(KINDS["equation"], CARTPOLE, cells=9)
    expected = evaluate(KINDS["equation"], CARTPOLE, starts=found.starts)
    np.testing.assert_array_equal(found.failed, expected.failed[0])
    np.testing.assert_array_equal(found.penalties, expected.penalties[0])
    assert 0 < found.lost < 0.5
    assert "starts" not in found.to_dict()
    assert len(found.to_dict()["failed"]) == 81


def test_an_unstable_loop_loses_all_but_its_setpoint() -> None:
    starts = np.array([[2.0], [2.5], [-3.0]])
    found = map_starts(integrating(-10.0), FIRST_ORDER, starts=starts)
    assert found.failed.tolist() == [False, True, True]
    assert found.to_dict()["starts"] == starts.tolist()
    assert repr(found) == "loses 2 of 3 starts"


def test_no_box_no_grid() -> None:
    tables = SPRING.model_dump(mode="json", exclude_none=True)
    with pytest.raises(ClearloopError, match="task spring: its starts come from the batch"):
        make_grid(Task.from_dict(tables | {"starts": {"from": "batch"}}))
