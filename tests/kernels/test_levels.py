"""Actions in whole steps: the engine rounds as plain Python does, to the bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.expression import parse
from clearloop.kernels.engine import roll_out
from clearloop.task.tables import to_levels
from tests.kernels.rig import Rig

VALUES = st.sampled_from([0.5, -0.5, 0.25, 1e12, -1e12, 0.05]) | st.floats(-20, 20)


def engine(asked: Any, limits: Any, counts: Any, dtype: Any = np.float64, population: int = 1) -> Any:
    """[P, n, A] the actions of controllers that ask for their states."""
    rig = Rig(["x", "y"], ["u", "v"], dtype=dtype)
    policies = rig.programs([[parse("x"), parse("y")]] * population)
    policies = policies._replace(limits=np.array(limits, dtype), counts=np.array(counts, dtype))
    return np.asarray(
        roll_out(policies, rig.plant(["0", "0"]), rig.job(asked), trajectories=True).actions
    )[0, :, :, 0]  # fmt: skip


@settings(deadline=None)
@given(
    asked=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=40),
    low=st.sampled_from([0.0, -10.0, 0.1, 1 / 3]) | st.floats(-10, 10),
    width=st.sampled_from([1.0, 0.3, 7.0]) | st.floats(0.01, 20),
    count=st.integers(1, 1_000),
)
def test_the_engine_rounds_as_plain_python_does(
    asked: list[tuple[float, float]], low: float, width: float, count: int
) -> None:
    limits = [[low, low + width], [-1.5, 1.5]]
    for counts in ([count, 0], [count, 3], [0, 7]):
        expected = to_levels(np.array(asked), np.array(limits), np.array(counts))
        np.testing.assert_array_equal(engine(asked, limits, counts)[0], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_controllers_that_share_a_vector_do_not_disturb_each_other(dtype: Any) -> None:
    asked = np.random.default_rng(0).uniform(-2, 2, (7, 2))
    actions = engine(asked, [[-1, 1], [0, 1]], [20, 1], dtype, population=11)
    assert (actions == actions[0]).all()
    np.testing.assert_array_equal(actions[0, :, 1], asked[:, 1] >= 0.5)
    np.testing.assert_allclose(actions[0, :, 0], np.clip(np.round(asked[:, 0] * 10) / 10, -1, 1), atol=1e-6)
