"""The value for whole populations: the same recursion as a plain loop, and near the table where it can be."""

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Equation, encode
from clearloop.errors import ClearloopError
from clearloop.evaluation.q_evaluation import CAUTION, RIDGE, LinearQ, LoggedSteps, possible_experience
from clearloop.kernels.layout import Policies
from clearloop.plants.scenarios import setpoint_table
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.evaluation.corridor import CORRIDOR, MOVES, PENALTIES, PLACES, STARTS, WARY, batch

CELLS = np.array([(place, by) for place in (*PLACES, 5) for by in MOVES], float)
DIVING = Equation(outputs={"move": "if(place < 9.5, 1, 0)"})


def one_hot(rows: Floats) -> Floats:
    return np.asarray((rows[:, None] == CELLS).all(axis=2), float)


def steps() -> LoggedSteps:
    return possible_experience(CORRIDOR, batch(), setpoint_table(CORRIDOR, 1)[0])


def make(shares: Floats) -> LinearQ:
    return LinearQ(CORRIDOR, steps(), one_hot, shares)


def encoded(*controllers: Equation) -> Policies:
    return encode([c.for_task(CORRIDOR) for c in controllers], CORRIDOR, history=1, dtype=np.float32)


def test_the_recursion_is_that_of_a_plain_loop() -> None:
    shares, some = np.random.default_rng(0).uniform(0, 1, 15), steps()
    after = np.random.default_rng(1).uniform(0, 1, (15, len(CELLS) + 1))
    features = np.hstack([one_hot(some.pairs), np.ones((15, 1))])
    weigh = 1 / (shares * (1 - shares) + CAUTION)
    weigh /= weigh.mean()
    normal = features.T @ np.diag(weigh) @ features
    ridge = RIDGE * normal.diagonal().mean() * np.eye(len(normal))
    weights = np.zeros(len(normal))
    for k in range(1, CORRIDOR.horizon + 1):
        targets = np.empty(15)
        for row in range(15):
            lasting = some.reward[row] * sum(0.9**j for j in range(k))
            goes_on = some.reward[row] + 0.9 * (after[row] @ weights)
            targets[row] = lasting if some.failing[row] else goes_on
        weights = np.linalg.inv(normal + ridge) @ (features.T @ (weigh * targets))
    np.testing.assert_allclose(make(shares).iterate(after), weights, rtol=1e-8, atol=1e-8)


def test_near_the_table_with_a_feature_for_each_cell() -> None:
    found = make(np.full(15, 0.5)).value(WARY.for_task(CORRIDOR), STARTS)
    np.testing.assert_allclose(found, PENALTIES, rtol=0.05, atol=0.05)


def test_a_population_is_its_controllers() -> None:
    value = make(np.full(15, 0.5))
    together = value.penalties(encoded(WARY, DIVING), STARTS)
    alone = [value.penalties(encoded(each), STARTS)[0] for each in (WARY, DIVING)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert together[1].mean() > together[0].mean() + 1


def test_what_is_better_than_possible_counts_as_a_penalty() -> None:
    value = make(np.full(15, 0.5))
    value.rewards = value.rewards + 10.0  # as if least squares had gone astray
    assert value.value(WARY.for_task(CORRIDOR), STARTS).min() > max(PENALTIES[:4])


def test_what_a_value_costs() -> None:
    assert make(np.full(15, 0.5)).cost == 15 * CORRIDOR.horizon


def test_learned_from_a_reference_with_the_same_generator_the_same() -> None:
    one, other = (LinearQ.learn(CORRIDOR, batch(), WARY, rng=np.random.default_rng(0)) for _ in range(2))
    found = one.penalties(encoded(WARY, DIVING), STARTS)
    np.testing.assert_array_equal(found, other.penalties(encoded(WARY, DIVING), STARTS))
    assert found.shape == (2, 5)
    assert ((found >= 0) & (found <= sum(0.9**k for k in range(12)))).all()


def test_a_reference_that_remembers_is_refused() -> None:
    with pytest.raises(ClearloopError, match="a pid remembers more than the task's window holds"):
        LinearQ.learn(CARTPOLE, batch(), KINDS["pid"], rng=np.random.default_rng(0))
