"""A law over windows does what the controller's own `act` does."""

import numpy as np
import pytest

from clearloop.diagnosis.response import Law, begun, moved_on
from tests.controllers.kinds import CARTPOLE, KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_thirty_steps_are_those_of_act(kind: str) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    law = Law(controller, CARTPOLE)
    seen = np.random.default_rng(0).normal(0, 0.2, (30, 2, 4))  # two plants that go anywhere
    memories = [controller.reset() for _ in range(2)]
    windows = begun(seen[0], 1, law.rows(30))
    for age, states in enumerate(seen, 1):
        windows = moved_on(windows, states) if age > 1 else windows
        chosen = law(windows, age)
        for plant, memory in enumerate(memories):
            named = dict(zip(CARTPOLE.states, states[plant].tolist(), strict=True))
            assert chosen[plant, 0] == pytest.approx(controller.act(named, memory)["force"], abs=1e-9)
        windows[:, 0, 4:] = chosen


def test_the_window_of_a_pid_is_no_longer_than_the_episode() -> None:
    law = Law(KINDS["pid"], CARTPOLE)
    assert law.history == 40
    assert law.rows(7) == 7


def test_the_present_becomes_the_past() -> None:
    windows = np.arange(6.0).reshape(1, 2, 3)
    np.testing.assert_array_equal(moved_on(windows, np.array([[8.0, 9.0]])), [[[8, 9, 0], [0, 1, 2]]])
