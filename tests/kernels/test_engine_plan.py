"""How the engine divides its work, before anything is computed."""

import os
from itertools import pairwise

import numpy as np
import pytest

from clearloop.expression import parse
from clearloop.kernels import engine
from clearloop.kernels.layout import (
    CALM,
    FUZZY,
    LINEAR,
    NETWORK,
    PID,
    RELU,
    TANH,
    Disturbances,
    Job,
    Networks,
    Policies,
)
from clearloop.kernels.network import flatten, fold_biases, fold_networks
from tests.kernels.rig import Rig, policies_of


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for said, threads in (("3", 3), ("1", 1), ("0", cores), ("-2", cores), ("many", cores), ("", cores)):
        monkeypatch.setenv("CLEARLOOP_THREADS", said)
        assert engine.threads() == threads
    monkeypatch.delenv("CLEARLOOP_THREADS")
    assert engine.threads() == cores
    allowed = {0: range(5)}  # this process
    monkeypatch.setattr(os, "sched_getaffinity", allowed.__getitem__, raising=False)
    assert engine.threads() == 5


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("tiles", [1, 2, 7, 100])
def test_every_tile_is_worked_on_once_in_a_few_pieces_for_each_thread(tiles: int, workers: int) -> None:
    pieces: list[tuple[int, int]] = []
    engine._hand_out(pieces.append, tiles, workers)
    assert sorted(tile for first, last in pieces for tile in range(first, last)) == list(range(tiles))
    assert len(pieces) == min(tiles, 4 * workers)
    assert all(first < last for first, last in pieces)


def run_plainly(numbers: np.ndarray, sizes: list[int], activations: list[int], x: np.ndarray) -> np.ndarray:
    """A network from its flat array."""
    at = 0
    for k, (n_in, n_out) in enumerate(pairwise(sizes)):
        weights = numbers[at : at + n_in * n_out].reshape(n_in, n_out)
        x = x @ weights + numbers[at + n_in * n_out : at + (n_in + 1) * n_out]
        x = np.tanh(x) if activations[k] == TANH else np.maximum(x, 0) if activations[k] == RELU else x
        at += (n_in + 1) * n_out
    return x


def run_folded(numbers: np.ndarray, sizes: list[int], activations: list[int], x: np.ndarray) -> np.ndarray:
    """The same with folded biases: a hidden ReLU floors its sum at the number in place of its bias."""
    at = 0
    for k, (n_in, n_out) in enumerate(pairwise(sizes)):
        weights = numbers[at : at + n_in * n_out].reshape(n_in, n_out)
        biases = numbers[at + n_in * n_out : at + (n_in + 1) * n_out]
        if activations[k] == RELU and k < len(activations) - 1:
            x = np.maximum(x @ weights, biases)
        else:
            x = x @ weights + biases
            x = np.tanh(x) if activations[k] == TANH else np.maximum(x, 0) if activations[k] == RELU else x
        at += (n_in + 1) * n_out
    return x


@pytest.mark.parametrize("last", [RELU, TANH])
@pytest.mark.parametrize("hidden", [[RELU, RELU], [RELU, TANH], [TANH, RELU]])
def test_folded_networks_are_the_same_function(hidden: list[int], last: int) -> None:
    rng, sizes, activations = np.random.default_rng(0), [3, 4, 5, 2], [*hidden, last]
    layers = [(rng.normal(size=(o, i)), rng.normal(size=o)) for i, o in pairwise(sizes)]
    one = flatten([weights for weights, _ in layers], [biases for _, biases in layers])
    several = np.stack([one, 2 * one])
    folded = fold_biases(several, np.array(sizes), np.array(activations))
    assert folded.dtype == several.dtype
    x = rng.normal(size=(20, 3))
    for before, after in zip(several, folded, strict=True):
        expected = run_plainly(before, sizes, activations, x)
        np.testing.assert_allclose(run_folded(after, sizes, activations, x), expected, atol=1e-12)
    single = several.astype(np.float32)
    assert fold_biases(single, np.array(sizes), np.array(activations)).dtype == np.float32
    networks = Networks(several.ravel(), 2, np.array(sizes), np.array(activations))
    np.testing.assert_array_equal(fold_networks(networks).numbers, folded.ravel())


# Less work for the same actions.

LIMIT = [[-1.0, 1.0]]


def test_gains_that_are_zero_for_all_controllers_are_left_out() -> None:
    """Each controller has an offset, then a gain for each feature, for each of two actions."""
    numbers = np.zeros((2, 2, 5))
    numbers[0, 0, 2], numbers[1, 1, 4], numbers[:, :, 0] = 7.0, 8.0, 9.0
    lighter = engine._lighter(policies_of(LINEAR, numbers.reshape(2, 10), LIMIT * 2, float))
    assert lighter.sizes.tolist() == [1, 3]  # the second feature, and the fourth
    assert lighter.numbers.tolist() == [[9, 7, 0, 9, 0, 0], [9, 0, 0, 9, 0, 8]]
    assert lighter.numbers.flags.c_contiguous


def test_networks_of_controllers_are_folded_and_what_follows_them_stays() -> None:
    sizes, activations = np.array([3, 4, 1]), np.array([RELU, TANH])
    numbers = np.random.default_rng(1).normal(size=(2, 4 * 4 + 5 + 2))
    policies = policies_of(NETWORK, numbers, LIMIT, float, [2, *sizes, *activations, 1, 1])
    lighter = engine._lighter(policies)
    np.testing.assert_array_equal(lighter.numbers[:, :21], fold_biases(numbers[:, :21], sizes, activations))
    np.testing.assert_array_equal(lighter.numbers[:, 21:], numbers[:, 21:])
    assert (lighter.numbers[:, :21] != numbers[:, :21]).any()


# Where everything is in the memory of a thread.

SMALL = Rig(["x", "y"], history=2)
PLANT = SMALL.plant(["y", "u - x - y"])  # at most five words: u x - y -
LATE = Disturbances(np.array([3, 1]), np.ones((2, 1)), np.zeros((2, 1)), np.zeros((0, 0, 0)))


def lengths(policies: Policies, disturbances: Disturbances = CALM, aim: float = 0.0) -> dict[str, int]:
    """How many rows each thing has, and the numbers that are no places."""
    job = Job(np.zeros((2, 2)), np.full((1, 9, 2), aim), 1.0, 2, disturbances=disturbances)
    total, at = engine.plan_rows(policies, PLANT.dynamics, PLANT.reward, job)
    names = (
        "frame", "seen", "waiting", "reward", "fails", "total", "failed", "held", "loops", "slopes",
        "scores", "hidden", "stack",
    )  # fmt: skip
    places = [*(getattr(at, name) for name in names), total]
    found = dict(zip(names, np.diff(places).tolist(), strict=True))
    assert at.action == at.frame + 4  # after the next states, and the present ones
    others = {"at frame": at.frame, "at seen": at.seen, "latest": at.latest, "widest": at.widest}
    return found | others | {"features": at.features, "ring": at.ring}


LEAST = {
    "frame": 10, "seen": 0, "waiting": 0, "reward": 1, "fails": 1, "total": 1, "failed": 1, "held": 1,
    "loops": 0, "slopes": 6, "scores": 0, "hidden": 0, "stack": 5,
    "features": 10, "at frame": 8, "at seen": 18, "latest": 0, "widest": 0, "ring": 0,
}  # fmt: skip
"""The next states, and two lags of two states and an action with two setpoints: no thing overlaps another."""


def test_a_plan_has_rows_for_what_the_system_needs() -> None:
    linear = policies_of(LINEAR, np.ones((1, 9)), LIMIT, float)
    assert lengths(linear) == LEAST
    assert lengths(linear, aim=1.0) == LEAST | {"features": 0}  # features are made from aims, at the start
    disturbed = {"seen": 8, "waiting": 7, "latest": 3}  # gain, offset and delay, then four actions
    assert lengths(linear, LATE) == LEAST | disturbed | {"features": 18}
    assert lengths(linear, LATE, aim=1.0) == LEAST | disturbed | {"features": 0}


def test_a_plan_has_rows_for_what_each_kind_of_controller_needs() -> None:
    long = SMALL.programs([[parse("x + y * x - y * x * y")]])
    assert lengths(long) == LEAST | {"stack": 11}
    fuzzy = policies_of(FUZZY, np.ones((1, 9)), LIMIT, float, [3, 7])
    assert lengths(fuzzy) == LEAST | {"stack": 7}
    network = policies_of(NETWORK, np.ones((1, 9)), LIMIT, float, [2, 8, 4, 6, TANH, TANH])
    assert lengths(network) == LEAST | {"stack": 9, "scores": 6, "hidden": 12, "widest": 6}
    small = policies_of(NETWORK, np.ones((1, 9)), LIMIT, float, [2, 2, 4, 3, TANH, TANH])
    assert lengths(small) == LEAST | {"scores": 4, "hidden": 8, "widest": 4}
    windows = np.zeros((2, 2 * 12))
    windows[:, 3:6] = [[40, 3, 50], [40, 2, 50]]  # the window of the first loop stands between other numbers
    windows[:, 16] = 4, 5
    pids = policies_of(PID, windows, LIMIT, float, [2])
    assert lengths(pids) == LEAST | {"loops": 2 * (5 + 5), "ring": 5}
