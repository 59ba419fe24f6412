"""Trees and networks as fitted Q evaluation uses them: fitted often, always at the same points."""

import numpy as np
import pytest

from clearloop.evaluation.q_evaluation import NetworkFits, Trees
from clearloop.networks import Training

POINTS = np.random.default_rng(0).uniform(-1, 1, (200, 3))
ASKED = np.random.default_rng(1).uniform(-1, 1, (50, 3))
QUICK = NetworkFits(
    members=4, training=Training(hidden=(16,), activation="tanh", epochs=2, learning_rate=1e-2)
)


def shares(points: np.ndarray, k: int) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-points @ [2.0, -1.0, k / 10])))


def test_a_fit_of_grown_trees_is_an_average_over_leaves() -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    trees = Trees(members=1, trees=4, leaf=2, regrown=100)
    fit = trees.begin(POINTS, ASKED, rng=np.random.default_rng(2))
    first, second = (shares(POINTS, k) for k in (1, 2))
    child = np.random.default_rng(2).spawn(1)[0]
    forest = ExtraTreesRegressor(4, min_samples_leaf=2, random_state=int(child.integers(2**31)))
    forest.fit(POINTS, first)
    np.testing.assert_allclose(fit(first)[0], forest.predict(ASKED), rtol=1e-12)
    leaves, asked = forest.apply(POINTS), forest.apply(ASKED)
    expected = [
        np.mean([second[leaves[:, tree] == asked[row, tree]].mean() for tree in range(4)])
        for row in range(len(ASKED))
    ]
    np.testing.assert_allclose(fit(second)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "approximator", [Trees(trees=10, leaf=2, regrown=2), QUICK], ids=["trees", "networks"]
)
def test_members_follow_their_targets(approximator: NetworkFits | Trees) -> None:
    fit = approximator.begin(POINTS, ASKED, rng=np.random.default_rng(0))
    for k in range(60):
        answers = fit(shares(POINTS, k))
    assert answers.shape == (approximator.members, 50)
    assert ((answers >= 0) & (answers <= 1)).all()
    truth = shares(ASKED, 59)
    assert np.abs(answers - truth).mean() < 0.1
    assert np.abs(answers - 0.5).mean() > 0.2
