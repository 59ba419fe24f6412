"""Swarms for many problems at once."""

import numpy as np

from clearloop.arrays import Floats
from clearloop.evaluation.planning import FASTEST, INERTIA, PULL, Swarms

TARGETS = np.array([[0.2, 0.7, 0.5], [0.9, 0.1, 0.4], [0.5, 0.5, 1.0], [0.0, 0.3, 0.6]])


def swarms(targets: Floats = TARGETS, particles: int = 20, seed: int = 0) -> Swarms:
    rng = np.random.default_rng(seed)
    shape = (particles, 1, targets.shape[1])
    begin, speed = rng.random(shape), rng.uniform(-0.2, 0.2, shape)
    return Swarms(np.repeat(begin, len(targets), 1), np.repeat(speed, len(targets), 1), rng)


def search(found: Swarms, targets: Floats, rounds: int) -> None:
    everyone = np.arange(len(targets))
    for _ in range(rounds):
        found.tell(np.square(found.positions - targets).sum(axis=2), everyone)
        found.move(everyone)


def test_each_finds_its_own_target() -> None:
    found = swarms()
    search(found, TARGETS, 80)
    np.testing.assert_allclose(found.sorted()[0], TARGETS, atol=1e-3)


def test_what_one_finds_does_not_depend_on_the_others() -> None:
    together = swarms()
    search(together, TARGETS, 15)
    for number in range(len(TARGETS)):
        mine = TARGETS[number : number + 1]
        alone = swarms(mine)
        search(alone, mine, 15)
        np.testing.assert_array_equal(alone.best_positions[:, 0], together.best_positions[:, number])
        np.testing.assert_array_equal(alone.positions[:, 0], together.positions[:, number])


def test_a_move_is_that_of_the_textbook() -> None:
    found, everyone = swarms(particles=5), np.arange(len(TARGETS))
    search(found, TARGETS, 3)
    x, v, best = found.positions.copy(), found.velocities.copy(), found.best_positions.copy()
    twin = np.random.default_rng()
    twin.bit_generator.state = found.rng.bit_generator.state
    own, social = twin.random((2, 5, 1, 3))
    found.move(everyone)
    for p in range(5):
        for n in everyone:
            leader = min((p, (p - 1) % 5, (p + 1) % 5), key=lambda q: found.best_costs[q, n])
            pull = own[p, 0] * (best[p, n] - x[p, n]) + social[p, 0] * (best[leader, n] - x[p, n])
            step = np.clip(INERTIA * v[p, n] + PULL * pull, -FASTEST, FASTEST)
            np.testing.assert_allclose(found.positions[p, n], np.clip(x[p, n] + step, 0, 1), atol=1e-15)


def test_particles_stay_in_the_box_and_walls_stop_them() -> None:
    outside = np.full((1, 3), 3.0)
    found = swarms(outside)
    search(found, outside, 20)
    assert found.positions.min() >= 0.0
    assert found.positions.max() <= 1.0
    assert (found.velocities[found.positions == 1.0] <= 0.0).all()
    np.testing.assert_array_equal(found.sorted()[0], [[1.0, 1.0, 1.0]])


def test_those_that_rest_are_left_alone() -> None:
    found = swarms()
    found.tell(np.ones((20, 2)), np.array([1, 3]))
    before = found.positions.copy()
    found.move(np.array([1, 3]))
    moved = (found.positions != before).any(axis=(0, 2))
    assert moved.tolist() == [False, True, False, True]
    assert np.isfinite(found.best_costs).all(axis=0).tolist() == [False, True, False, True]


def test_what_is_not_a_number_is_never_best() -> None:
    found = swarms(TARGETS[:1], particles=4)
    found.tell(np.array([[np.nan], [3.0], [np.inf], [2.0]]), np.array([0]))
    assert found.best_costs[:, 0].tolist() == [np.inf, 3.0, np.inf, 2.0]
    np.testing.assert_array_equal(found.sorted()[:2, 0], found.positions[[3, 1], 0])


def test_equals_keep_their_order() -> None:
    found = swarms(TARGETS[:1], particles=4)
    found.tell(np.array([[1.0], [0.5], [0.5], [1.0]]), np.array([0]))
    np.testing.assert_array_equal(found.sorted()[:, 0], found.positions[[1, 2, 0, 3], 0])
