"""Networks equal NumPy: as controllers, as the dynamics of a surrogate and as its reward, for all shapes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clearloop.kernels.engine import Rollout, System, roll_out
from clearloop.kernels.layout import ACTIVATIONS, CLASSES, GREEDY, NETWORK, NETWORKS, VALUE, Networks
from clearloop.kernels.network import flatten
from tests.kernels.rig import Rig, policies_of

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
MEANING: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}

Layers = list[tuple[Any, Any, str]]  # weights [outputs, inputs], biases and activation

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def draw(
    rng: np.random.Generator, sizes: tuple[int, ...], activations: tuple[str, ...], dtype: Any
) -> Layers:
    shapes = zip(sizes, sizes[1:], activations, strict=False)
    return [
        (rng.normal(0, i**-0.5, (o, i)).astype(dtype), rng.normal(0, 0.3, o).astype(dtype), activation)
        for i, o, activation in shapes
    ]


def forward(layers: Layers, x: Any) -> Any:
    x = x.astype(float)
    for weights, biases, activation in layers:
        x = MEANING[activation](x @ weights.T.astype(float) + biases)
    return x


def flat(layers: Layers) -> Any:
    return flatten([weights for weights, _, _ in layers], [biases for _, biases, _ in layers])


def lower(networks: list[Layers]) -> Networks:
    first = networks[0]
    sizes = [first[0][0].shape[1], *(len(biases) for _, biases, _ in first)]
    kinds = [ACTIVATIONS[activation] for _, _, activation in first]
    return Networks(
        np.concatenate([flat(layers) for layers in networks]), len(networks), np.array(sizes), np.array(kinds)
    )


def assert_close(found: Any, expected: Any, dtype: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@both
@pytest.mark.parametrize("activation", MEANING)
@pytest.mark.parametrize("n", [*range(1, 14), 20, 33])
def test_a_controller_equals_numpy(n: int, activation: str, dtype: Any) -> None:
    """n inputs, then layers of all remainders; as many outputs as there are actions."""
    rng = np.random.default_rng(n)
    sizes = (n, 14 - n % 13, 1 + 5 * n % 13, 1 + 7 * n % 13)
    layers = draw(rng, sizes, (activation, "relu", "identity"), dtype)
    kinds = [ACTIVATIONS[kind] for _, _, kind in layers]
    inputs, scales = rng.permutation(n), rng.normal(0, 1, sizes[-1]).astype(dtype)
    rig = Rig([f"x{k}" for k in range(n)], [f"u{k}" for k in range(sizes[-1])], dtype=dtype)
    policies = policies_of(
        NETWORK,
        np.concatenate([flat(layers), scales])[None],
        [[-1e9, 1e9]] * sizes[-1],
        dtype,
        [3, *sizes, *kinds, *inputs],
    )
    starts = rng.normal(0, 1, (50, n)).astype(dtype)
    rollout = roll_out(policies, rig.plant(["0"] * n), rig.job(starts), trajectories=True)
    assert rollout.actions is not None
    assert_close(rollout.actions[0, 0, :, 0], forward(layers, starts[:, inputs]) * scales, dtype)


def roll_surrogate(dynamics: list[Layers], reward: list[Layers], starts: Any, **judgement: Any) -> Rollout:
    """One step with the action 0, for as many members as there are networks for the reward."""
    dtype, n = starts.dtype.type, starts.shape[1]
    rig = Rig([f"x{k}" for k in range(n)], dtype=dtype)
    plant = rig.plant(["0"] * n, absorbing=False)
    judgement = {"kind": VALUE, **judgement}
    system = System(
        plant.dynamics._replace(kind=NETWORKS, networks=lower(dynamics)),
        plant.reward._replace(networks=lower(reward), **judgement),
        len(reward),
    )
    still = policies_of(NETWORK, np.zeros((1, n + 2)), [[-1.0, 1.0]], dtype, [1, n, 1, 0, *range(n)])
    return roll_out(still, system, rig.job(starts), trajectories=True)


@both
@pytest.mark.parametrize("activation", MEANING)
@pytest.mark.parametrize("n", range(1, 14))
def test_a_surrogate_of_two_members_equals_numpy(n: int, activation: str, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    hidden = 1 + 5 * n % 13
    shape, kinds = (n + 1, hidden, 14 - n, 1), (activation, "relu", "identity")
    dynamics = [draw(rng, shape, kinds, dtype) for _ in range(2 * n)]
    reward = [draw(rng, (n, hidden, 1), kinds[1:], dtype) for _ in range(2)]
    starts = rng.normal(0, 1, (50, n)).astype(dtype)
    rollout = roll_surrogate(dynamics, reward, starts)
    assert rollout.states is not None
    assert not rollout.failed.any()
    entering = np.hstack([starts, np.zeros((50, 1))])
    for member in range(2):
        changes = [forward(layers, entering) for layers in dynamics[member * n : (member + 1) * n]]
        after = starts + np.hstack(changes)
        assert_close(rollout.states[member, 0, :, 1], after, dtype)
        assert_close(rollout.returns[member, 0], forward(reward[member], after)[:, 0], dtype)


@both
@pytest.mark.parametrize("classes", [1, 2, 3, 5, 7, 13])
def test_the_reward_is_that_of_the_largest_score(classes: int, dtype: Any) -> None:
    rng = np.random.default_rng(classes)
    dynamics = [draw(rng, (4, 1), ("identity",), dtype) for _ in range(6)]
    reward = [draw(rng, (3, 6, classes), ("tanh", "identity"), dtype) for _ in range(2)]
    levels, failing = rng.normal(0, 1, classes).astype(dtype), np.arange(classes) % 2 == 1
    starts = rng.normal(0, 3, (200, 3)).astype(dtype)
    rollout = roll_surrogate(dynamics, reward, starts, kind=CLASSES, levels=levels, failing=failing)
    assert rollout.states is not None
    for member in range(2):
        scores = forward(reward[member], rollout.states[member, 0, :, 1])
        best, second = np.sort(scores, axis=1)[:, [-1, -min(2, classes)]].T
        clear = (best - second > 1e-4) | (classes == 1)
        assert clear.mean() > 0.9
        assert (rollout.returns[member, 0] == levels[scores.argmax(axis=1)])[clear].all()
        assert (rollout.failed[member, 0] == failing[scores.argmax(axis=1)])[clear].all()


@both
def test_of_equal_scores_the_first_class_counts(dtype: Any) -> None:
    weights, biases = np.zeros((4, 1), dtype), np.array([0.0, 1.0, 1.0, 1.0], dtype)
    dynamics: list[Layers] = [[(np.zeros((1, 2), dtype), np.zeros(1, dtype), "identity")]]
    levels, failing = np.array([1.0, 2.0, 3.0, 4.0], dtype), np.array([True, False, True, True])
    rollout = roll_surrogate(
        dynamics, [[(weights, biases, "identity")]], np.zeros((3, 1), dtype),
        kind=CLASSES, levels=levels, failing=failing,
    )  # fmt: skip
    assert (rollout.returns == 2).all()
    assert not rollout.failed.any()


@both
@pytest.mark.parametrize("actions", [1, 2, 3])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_a_greedy_controller_takes_the_best_of_its_list(actions: int, activation: str, dtype: Any) -> None:
    rng = np.random.default_rng(actions)
    n, listed = 3, rng.uniform(-2, 2, (11, actions)).astype(dtype)
    layers = draw(rng, (n + actions, 9, 16, 1), (activation, "relu", "identity"), dtype)
    kinds = [ACTIVATIONS[kind] for _, _, kind in layers]
    inputs = rng.permutation(n)
    rig = Rig([f"x{k}" for k in range(n)], [f"u{k}" for k in range(actions)], dtype=dtype)
    numbers = np.concatenate([flat(layers), listed.ravel()])[None]
    sizes = [3, n + actions, 9, 16, 1, *kinds, *inputs]
    policies = policies_of(GREEDY, numbers, [[-1.5, 1.5]] * actions, dtype, sizes)
    starts = rng.normal(0, 2, (300, n)).astype(dtype)
    rollout = roll_out(policies, rig.plant(["0"] * n), rig.job(starts), trajectories=True)
    assert rollout.actions is not None
    pairs = np.concatenate([np.repeat(starts[:, inputs], 11, axis=0), np.tile(listed, (300, 1))], axis=1)
    values = forward(layers, pairs).reshape(300, 11)
    best = listed[values.argmax(axis=1)]
    sure = np.ptp(np.partition(values, -2, axis=1)[:, -2:], axis=1) > 1e-4
    np.testing.assert_array_equal(rollout.actions[0, 0, sure, 0], np.clip(best, -1.5, 1.5)[sure])
    assert sure.mean() > 0.9
    assert len(np.unique(best, axis=0)) > 3


def test_of_equals_a_greedy_controller_takes_the_first() -> None:
    rig = Rig(["x"], ["u"])
    numbers = [[0.0, 0.0, 7.0, *(0.3, -0.2, 0.1)]]  # weights of state and action, bias; the list
    policies = policies_of(GREEDY, numbers, [[-1, 1]], np.float64, [1, 2, 1, ACTIVATIONS["identity"], 0])
    rollout = roll_out(policies, rig.plant(["0"]), rig.job(np.zeros((5, 1))), trajectories=True)
    assert rollout.actions is not None
    assert (rollout.actions == 0.3).all()
