"""A law over windows does what the controller's own `act` does."""

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.data.log import first_windows
from clearloop.evaluation.stepping import Law
from tests.controllers.kinds import CARTPOLE, KINDS


def begun(states: Floats, rows: int) -> Floats:
    """The windows [N, rows, S + A] of episodes that begin."""
    return first_windows(states, 1, rows).reshape(len(states), rows, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_thirty_steps_are_those_of_act(kind: str) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    law = Law(controller, CARTPOLE)
    seen = np.random.default_rng(0).normal(0, 0.2, (30, 2, 4))  # two plants that go anywhere
    memories = [controller.reset() for _ in range(2)]
    windows = begun(seen[0], law.rows(30))
    for age, states in enumerate(seen, 1):
        if age > 1:
            windows = np.concatenate([begun(states, 1), windows[:, :-1]], axis=1)
        chosen = law(windows, age)
        for plant, memory in enumerate(memories):
            named = dict(zip(CARTPOLE.states, states[plant].tolist(), strict=True))
            assert chosen[plant, 0] == pytest.approx(controller.act(named, memory)["force"], abs=1e-9)
        windows[:, 0, 4:] = chosen


def test_the_window_of_a_pid_is_no_longer_than_the_episode() -> None:
    law = Law(KINDS["pid"], CARTPOLE)
    assert law.history == 40
    assert law.rows(7) == 7
