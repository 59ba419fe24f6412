import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError
from clearloop.networks import Activation, Network, Trained, Training, train

BRIEF = Training(epochs=2)  # shared, with the sizes of the data, so that it is compiled once


def smooth_data(n: int, seed: int) -> tuple[Floats, Floats]:
    """Two targets of very different magnitude and offset; the third input means nothing."""
    x = np.random.default_rng(seed).uniform(-2, 2, (n, 3)) * [1.0, 1.0, 30.0] + [0.0, 0.0, 500.0]
    large = 200.0 + 50.0 * np.sin(x[:, :1]) * x[:, 1:2]
    return x, np.stack([large, 1e-3 * np.tanh(2 * x[:, 1:2])])


def train_smooth(n: int = 1_000, seed: int = 0, settings: Training = BRIEF, **options: Any) -> Trained:
    rng = np.random.default_rng(seed)
    return train(
        *smooth_data(n, 1), held_out=smooth_data(200, 2), settings=settings, rng=rng, members=2, **options
    )


def r_squared(network: Network, x: Floats, y: Floats) -> float:
    return 1.0 - float(np.mean((network(x) - y) ** 2) / np.var(y))


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_learns_smooth_functions_in_their_own_units(activation: Activation) -> None:
    settings = Training(epochs=60, batch_size=32, learning_rate=1e-2, activation=activation)
    trained = train_smooth(settings=settings)
    x, y = smooth_data(2_000, 3)
    assert len(trained.networks) == 2
    for member in trained.networks:
        for network, target in zip(member, y, strict=True):
            assert network.sizes == (3, 10, 10, 10, 1)
            assert r_squared(network, x, target) > 0.995


def cart_pole_accelerations(x: Floats) -> Floats:
    """[2, n, 1] of angle and position, for states and forces [n, 5]."""
    theta, omega, _, _, force = x.T
    h = force + 0.05 * omega**2 * np.sin(theta)
    angular = (1.1 * 9.81 * np.sin(theta) - h * np.cos(theta)) / (4 / 3 * 0.55 - 0.05 * np.cos(theta) ** 2)
    return np.stack([angular, (h - 0.05 * angular * np.cos(theta)) / 1.1])[:, :, None]


def test_learns_the_accelerations_of_a_cart_pole() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (10_000, 5)) * [0.7, 2.0, 2.4, 2.0, 10.0]
    y = cart_pole_accelerations(x)
    held_out = x[9_000:], y[:, 9_000:]
    trained = train(x[:9_000], y[:, :9_000], held_out=held_out, settings=Training(), rng=rng)
    for network, target in zip(trained.networks[0], held_out[1], strict=True):
        assert r_squared(network, held_out[0], target) > 0.9999


def test_learns_classes() -> None:
    def data(n: int, seed: int) -> tuple[Floats, Floats]:
        x = np.random.default_rng(seed).uniform(-3, 3, (n, 4))
        inside = (np.abs(x[:, 0]) < 1).astype(int)
        return x, np.eye(3)[None, np.where(np.abs(x[:, 1]) > 2, 2, inside)]

    settings, rng = Training(epochs=60, batch_size=32, learning_rate=1e-2), np.random.default_rng(0)
    trained = train(*data(2_000, 0), held_out=data(300, 1), settings=settings, rng=rng, loss="classes")
    x, one_hot = data(2_000, 2)
    logits = trained.networks[0][0](x)
    assert np.mean(logits.argmax(axis=1) == one_hot[0].argmax(axis=1)) > 0.97
    log_likelihood = np.sum(one_hot[0] * logits, axis=1) - np.log(np.exp(logits).sum(axis=1))
    assert -log_likelihood.mean() < 0.1


def test_keeps_the_weights_that_were_best_on_held_out_data() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(-1, 1, (330, 3)), rng.normal(size=(1, 330, 1))
    y = x[None, :, :1] + noise  # thirty rows to learn from: the networks soon fit the noise
    settings = Training(epochs=150, batch_size=10, learning_rate=1e-2)
    trained = train(x[:30], y[:, :30], held_out=(x[30:], y[:, 30:]), settings=settings, rng=rng, members=3)
    assert trained.training_loss.shape == trained.held_out_loss.shape == (150, 3, 1)
    for member, (network,) in enumerate(trained.networks):
        curve = trained.held_out_loss[:, member, 0]
        loss = np.mean((network(x[30:]) - y[0, 30:]) ** 2) / np.var(y[0, :30])
        assert loss == pytest.approx(curve.min(), rel=1e-4)
        assert loss < 0.8 * curve[-1]
        assert trained.training_loss[-1, member, 0] < 0.5 * trained.training_loss[0, member, 0]


def test_the_same_seed_gives_the_same_bits_and_another_gives_others() -> None:
    one, again, other = (train_smooth(seed=seed) for seed in (0, 0, 1))
    x, _ = smooth_data(50, 4)
    assert np.array_equal(one.networks[1][0](x), again.networks[1][0](x))
    assert np.array_equal(one.held_out_loss, again.held_out_loss)
    assert not np.array_equal(one.networks[1][0](x), other.networks[1][0](x))


def test_every_network_is_another() -> None:
    trained = train_smooth()
    assert np.unique(trained.held_out_loss[0]).size == trained.held_out_loss[0].size == 4


def test_each_network_sees_each_row_at_most_once_in_an_order_of_its_own() -> None:
    from clearloop.networks.descent import minibatches

    order = minibatches(np.random.default_rng(0), (2, 3), np.arange(100)[None], 32)
    assert order.shape == (3, 2, 3, 32)  # four of the hundred rows fill no batch
    orders = np.moveaxis(order, 0, 2).reshape(6, 96)
    assert all(np.unique(rows).size == 96 for rows in orders)
    assert len({tuple(rows) for rows in orders}) == 6


def test_tells_its_progress() -> None:
    told: list[tuple[float, float]] = []
    trained = train_smooth(progress=lambda share, loss: told.append((share, loss)))
    assert [share for share, _ in told] == [0.5, 1.0]
    best = np.minimum.accumulate(trained.held_out_loss).mean(axis=(1, 2))
    assert [loss for _, loss in told] == pytest.approx(best.tolist(), rel=1e-6)


def test_constant_columns_do_no_harm() -> None:
    x, y = smooth_data(1_000, 1)
    x[:, 2], y[1] = 0.1, 7.0
    rng = np.random.default_rng(0)
    trained = train(x, y, held_out=(x[:200], y[:, :200]), settings=BRIEF, rng=rng, members=2)
    varying, fixed = trained.networks[0]
    assert np.isfinite(trained.held_out_loss).all()
    assert np.array_equal(varying(x), varying(np.column_stack([x[:, :2], x[:, 2] + 1e3])))
    assert (fixed(x) == 7.0).all()


def test_equal_trainings_are_compiled_once(caplog: pytest.LogCaptureFixture) -> None:
    import jax

    with jax.log_compiles():
        for seed in (0, 1):
            train_smooth(n=999, seed=seed)
    assert caplog.text.count("Finished XLA compilation of jit(_epoch)") == 1


def test_fewer_rows_than_a_minibatch_are_one_minibatch() -> None:
    trained = train_smooth(n=5, settings=Training(epochs=100))
    assert (trained.training_loss[-1] < 0.5 * trained.training_loss[0]).all()


def test_divergence_is_an_error() -> None:
    with pytest.raises(ClearloopError, match="lower the learning rate"):
        train_smooth(settings=Training(epochs=1, learning_rate=1e38))


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("inputs", [True, False])
@pytest.mark.parametrize("name", ["training", "held-out"])
def test_rows_that_are_not_finite_are_named(name: str, inputs: bool, value: float) -> None:
    data = {"training": smooth_data(30, 1), "held-out": smooth_data(10, 2)}
    x, y = data[name]
    if inputs:
        x[7, 1] = value
    else:
        y[1, 7, 0] = value
    with pytest.raises(ClearloopError, match=f"1 {name} rows .* row 7"):
        train(*data["training"], held_out=data["held-out"], settings=BRIEF, rng=np.random.default_rng(0))


def test_empty_data_is_refused() -> None:
    data, empty, rng = smooth_data(10, 1), smooth_data(0, 1), np.random.default_rng(0)
    with pytest.raises(ClearloopError, match="no training rows"):
        train(*empty, held_out=data, settings=BRIEF, rng=rng)
    with pytest.raises(ClearloopError, match="no held-out rows"):
        train(*data, held_out=empty, settings=BRIEF, rng=rng)


def test_wrong_shapes_and_classes_that_are_not_one_hot_are_refused() -> None:
    (x, y), rng = smooth_data(10, 1), np.random.default_rng(0)
    for targets in (y[0], y[:, :9]):
        with pytest.raises(ValueError, match=r"\[T, n, outputs\]"):
            train(x, targets, held_out=(x, y), settings=BRIEF, rng=rng)
    with pytest.raises(ValueError, match="one-hot"):
        train(x, y, held_out=(x, y), settings=BRIEF, rng=rng, loss="classes")


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"batch_size": 0}, {"learning_rate": -1.0}, {"hidden": (10, 0)}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ClearloopError, match="must be positive"):
        Training(**wrong)


def test_only_training_imports_jax() -> None:
    code = "import clearloop.networks, sys; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
