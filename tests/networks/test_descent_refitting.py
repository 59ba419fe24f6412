"""Networks that follow targets which change."""

import numpy as np

from clearloop.networks import Training
from clearloop.networks.descent import Refitting

POINTS = np.random.default_rng(0).uniform(-1, 1, (300, 3))
READS = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
SETTINGS = Training(hidden=(12, 8), activation="tanh", epochs=5, batch_size=64, learning_rate=1e-2)


def make(asked: np.ndarray = POINTS) -> Refitting:
    return Refitting(POINTS, asked, reads=READS, settings=SETTINGS, rng=np.random.default_rng(1))


def test_answers_follow_the_targets() -> None:
    fit = make()
    for centre in np.linspace(0.1, 0.9, 20):
        targets = np.clip(centre + 0.1 * POINTS[:, 0], 0, 1)
        answers = fit(targets)
    assert answers.shape == (2, 300)
    assert np.abs(answers - targets).mean() < 0.05


def test_what_a_network_does_not_see_changes_nothing() -> None:
    fit = make(np.vstack([POINTS, POINTS * [1, 1, -5]]))
    answers = fit(1 / (1 + np.exp(-3 * POINTS[:, 2])))
    np.testing.assert_array_equal(answers[0, :300], answers[0, 300:])
    assert np.abs(answers[1, :300] - answers[1, 300:]).max() > 0.1


def test_features_are_what_the_last_layer_reads() -> None:
    fit = make()
    answers = fit(np.full(300, 0.3))
    features = fit.features(POINTS)
    assert features.shape == (300, 16)
    w, b = (np.asarray(part)[:, 0] for part in fit.layers[-1])
    logits = [features[:, 8 * m : 8 * m + 8] @ w[m, 0] + b[m, 0] for m in range(2)]
    np.testing.assert_allclose(1 / (1 + np.exp(-np.array(logits))), answers, rtol=1e-4)
