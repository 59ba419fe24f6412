"""Behaviour cloning: the log's own law, and a network."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import Linear, NetworkController
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.methods.cloning import Cloning
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

TASK = make_task(2)
U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
MODEL = make_model(TASK, U, V)
RANDOM = make_log(TASK, U, V, size=4000)


def begin(log: Batch, **settings: int) -> tuple[Linear, NetworkController]:
    problem = make_problem(TASK, log, MODEL)
    search = Cloning(**settings).begin(problem, rng=np.random.default_rng(0))
    search.advance()
    assert search.done
    law, network = (candidate.controller for candidate in search.candidates())
    assert isinstance(law, Linear)
    assert isinstance(network, NetworkController)
    return law, network


def test_both_clones_do_as_the_log_did() -> None:
    law, network = begin(replace(RANDOM, actions=RANDOM.states @ [[-0.4], [-0.3]]))
    assert law.gains == {"u0": pytest.approx({"x0": -0.4, "x1": -0.3}, rel=0.01)}
    for x0, x1 in ((0.5, -0.5), (-0.7, 0.1), (0.0, 0.8)):
        answer = network.act({"x0": x0, "x1": x1}, network.reset())
        assert answer["u0"] == pytest.approx(-0.4 * x0 - 0.3 * x1, abs=0.03)
    assert "explains 99." in str(network.name)


def test_of_random_actions_there_is_nothing_to_clone() -> None:
    with pytest.raises(ClearloopError, match="cloning: there is nothing to clone: The actions look random"):
        begin(RANDOM)
