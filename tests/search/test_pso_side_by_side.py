"""Swarms for many problems at once: they share the random numbers and nothing else."""

import numpy as np

from clearloop.arrays import Floats
from clearloop.search.pso import PSO, Swarm

TARGETS = np.array([[0.2, 0.7, 0.5], [0.9, 0.1, 0.4], [0.5, 0.5, 1.0], [0.0, 0.3, 0.6]])


def swarms(targets: Floats = TARGETS, particles: int = 20, seed: int = 0) -> Swarm:
    rng = np.random.default_rng(seed)
    shape = (particles, 1, targets.shape[1])
    begin, speed = rng.random(shape), rng.uniform(-0.2, 0.2, shape)
    begun = np.repeat(begin, len(targets), 1), np.repeat(speed, len(targets), 1)
    bounds = np.tile([0.0, 1.0], (targets.shape[1], 1))
    return Swarm(bounds, PSO(particles=particles), rng=rng, begin=begun)


def search(found: Swarm, targets: Floats, rounds: int) -> None:
    for _ in range(rounds):
        found.tell(np.square(found.ask() - targets).sum(axis=2))


def test_each_finds_its_own_target() -> None:
    found = swarms()
    search(found, TARGETS, 80)
    np.testing.assert_allclose(found.ranked()[0], TARGETS, atol=1e-3)


def test_what_one_finds_does_not_depend_on_the_others() -> None:
    together = swarms()
    search(together, TARGETS, 15)
    for number in range(len(TARGETS)):
        mine = TARGETS[number : number + 1]
        alone = swarms(mine)
        search(alone, mine, 15)
        np.testing.assert_array_equal(alone.best_positions[:, 0], together.best_positions[:, number])
        np.testing.assert_array_equal(alone.positions[:, 0], together.positions[:, number])


def test_one_alone_is_a_swarm_without_others_beside_it() -> None:
    beside = swarms(TARGETS[:1])
    begun = beside.positions[:, 0].copy(), beside.velocities[:, 0].copy()
    rng = np.random.default_rng()
    rng.bit_generator.state = beside.rng.bit_generator.state
    alone = Swarm(beside.bounds, beside.settings, rng=rng, begin=begun)
    search(beside, TARGETS[:1], 15)
    for _ in range(15):
        alone.tell(np.square(alone.ask() - TARGETS[0]).sum(axis=1))
    np.testing.assert_array_equal(alone.positions, beside.positions[:, 0])
    np.testing.assert_array_equal(alone.best[0], beside.ranked()[0, 0])


def test_a_move_is_that_of_the_textbook() -> None:
    found = swarms(particles=5)
    search(found, TARGETS, 3)
    x, v = found.positions.copy(), found.velocities.copy()
    twin = np.random.default_rng()
    twin.bit_generator.state = found.rng.bit_generator.state
    own, social = twin.random((2, 5, 1, 3))
    search(found, TARGETS, 1)
    best = found.best_positions
    for p in range(5):
        for n in range(len(TARGETS)):
            leader = min((p, (p - 1) % 5, (p + 1) % 5), key=lambda q: found.best_costs[q, n])
            pull = own[p, 0] * (best[p, n] - x[p, n]) + social[p, 0] * (best[leader, n] - x[p, n])
            step = np.clip(0.72981 * v[p, n] + 1.49618 * pull, -0.5, 0.5)
            np.testing.assert_allclose(found.positions[p, n], np.clip(x[p, n] + step, 0, 1), atol=1e-15)


def test_particles_stay_in_the_box_and_walls_stop_them() -> None:
    outside = np.full((1, 3), 3.0)
    found = swarms(outside)
    search(found, outside, 20)
    assert found.positions.min() >= 0.0
    assert found.positions.max() <= 1.0
    assert (found.velocities[found.positions == 1.0] <= 0.0).all()
    np.testing.assert_array_equal(found.ranked()[0], [[1.0, 1.0, 1.0]])


def test_those_that_rest_are_left_alone() -> None:
    found = swarms()
    before = found.ask()
    found.tell(np.ones((20, 2)), np.array([1, 3]))
    moved = (found.positions != before).any(axis=(0, 2))
    assert moved.tolist() == [False, True, False, True]
    assert np.isfinite(found.best_costs).all(axis=0).tolist() == [False, True, False, True]


def test_what_is_not_a_number_is_never_best() -> None:
    found = swarms(TARGETS[:1], particles=4)
    asked = found.ask()
    found.tell(np.array([[np.nan], [3.0], [np.inf], [2.0]]), np.array([0]))
    assert found.best_costs[:, 0].tolist() == [np.inf, 3.0, np.inf, 2.0]
    np.testing.assert_array_equal(found.ranked()[:2, 0], asked[[3, 1], 0])


def test_equals_keep_their_order() -> None:
    found = swarms(TARGETS[:1], particles=4)
    asked = found.ask()
    found.tell(np.array([[1.0], [0.5], [0.5], [1.0]]), np.array([0]))
    np.testing.assert_array_equal(found.ranked()[:, 0], asked[[1, 2, 0, 3], 0])
