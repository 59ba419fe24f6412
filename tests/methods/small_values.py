"""Values from the batch with small networks, where a test does not ask how good they are."""

import pytest

from clearloop.evaluation import q_evaluation
from clearloop.evaluation.q_evaluation import NetworkFits
from clearloop.methods import learning
from clearloop.networks import Training

SMALL = NetworkFits(
    members=2,
    training=Training(hidden=(8, 8), activation="tanh", epochs=1, batch_size=512, learning_rate=1e-3),
)


def make_values_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(q_evaluation, "NETWORK_SETTINGS", SMALL)
    monkeypatch.setattr(learning, "NETWORK_SETTINGS", SMALL)
    monkeypatch.setattr(learning, "JUDGED", 2)
