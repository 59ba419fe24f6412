from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearloop.arrays import Floats
from clearloop.search.pso import PSO, Swarm
from tests.search.landscapes import rastrigin, sphere

Neighbourhood = Literal["ring", "global"]
NEIGHBOURHOODS: tuple[Neighbourhood, ...] = ("ring", "global")

EXAMPLES = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def box(d: int, low: float = -5.12, high: float = 5.12) -> Floats:
    return np.tile([low, high], (d, 1))


def swarm_of(settings: PSO, d: int = 3, seed: int = 0) -> Swarm:
    return Swarm(box(d), settings, rng=np.random.default_rng(seed))


@st.composite
def swarms(draw: st.DrawFn) -> PSO:
    return PSO(
        particles=draw(st.integers(1, 12)),
        neighbourhood=draw(st.sampled_from(NEIGHBOURHOODS)),
        reach=draw(st.integers(0, 5)),
        fastest=draw(st.floats(0.01, 1.0)),
    )


@pytest.mark.parametrize("neighbourhood", NEIGHBOURHOODS)
def test_finds_the_minimum_of_a_sphere(neighbourhood: Neighbourhood) -> None:
    swarm = swarm_of(PSO(particles=30, neighbourhood=neighbourhood), d=6)
    for _ in range(400):
        swarm.tell(sphere(swarm.ask()))
    position, cost = swarm.best
    assert cost == sphere(position[None])[0] < 1e-6
    assert position == pytest.approx(np.ones(6), abs=1e-3)


def test_a_ring_finds_the_lowest_of_many_minima() -> None:
    swarm = swarm_of(PSO(particles=60), d=5)
    for _ in range(800):
        swarm.tell(rastrigin(swarm.ask()))
    position, cost = swarm.best
    assert cost < 1e-6
    assert position == pytest.approx(np.zeros(5), abs=1e-4)


def test_news_travels_at_once_globally_and_step_by_step_in_a_ring() -> None:
    costs = np.array([5.0, 4.0, 3.0, 2.0, 9.0, 1.0])
    leaders = {}
    for name, chosen in {
        "global": PSO(particles=6, neighbourhood="global"),
        "near": PSO(particles=6),
        "far": PSO(particles=6, reach=2),
        "alone": PSO(particles=6, reach=0),
    }.items():
        swarm = swarm_of(chosen)
        swarm.tell(costs)
        leaders[name] = swarm.leaders().tolist()
    assert leaders["global"] == [5] * 6
    assert leaders["near"] == [5, 2, 3, 3, 5, 5]
    assert leaders["far"] == [5, 5, 3, 5, 5, 5]
    assert leaders["alone"] == [0, 1, 2, 3, 4, 5]


def test_summits_are_the_best_of_their_neighbourhood_and_the_best_comes_first() -> None:
    swarm = swarm_of(PSO(particles=6))
    asked = swarm.ask()
    swarm.tell(np.array([5.0, 4.0, 3.0, 2.0, 9.0, 1.0]))
    assert np.array_equal(swarm.summits(), asked[[5, 3]])


@pytest.mark.parametrize("cost", [1.0, np.nan])
def test_on_a_plain_all_are_summits(cost: float) -> None:
    swarm = swarm_of(PSO(particles=6))
    asked = swarm.ask()
    swarm.tell(np.full(6, cost))
    assert np.array_equal(swarm.summits(), asked)


@EXAMPLES
@given(
    swarms(), st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)), min_size=1, max_size=4),
    st.integers(0, 2**32),
)  # fmt: skip
def test_never_leaves_its_bounds_nor_exceeds_its_speed(
    chosen: PSO, sides: list[tuple[float, float]], seed: int
) -> None:
    bounds = np.array([[low, low + width] for low, width in sides])
    swarm = Swarm(bounds, chosen, rng=np.random.default_rng(seed))
    low, high = bounds.T
    before = swarm.ask()
    for _ in range(8):
        swarm.tell(-np.abs(before - low).sum(axis=1))  # the minimum is outside
        after = swarm.ask()
        assert np.all((low <= after) & (after <= high))
        assert np.all(
            np.abs(after - before) <= chosen.fastest * (high - low) * (1 + 1e-9) + 1e-9 * np.abs(low)
        )
        before = after


def test_what_is_not_a_number_is_never_the_best() -> None:
    swarm = swarm_of(PSO(particles=5))
    swarm.tell(np.full(5, np.nan))
    assert swarm.best[1] == np.inf
    asked = swarm.ask()
    swarm.tell(np.array([np.nan, 3.0, np.inf, np.nan, 4.0]))
    assert swarm.best[1] == 3.0
    assert np.array_equal(swarm.best[0], asked[1])


def test_what_was_asked_for_is_the_callers() -> None:
    swarm = swarm_of(PSO(particles=4))
    swarm.ask()[:] = np.nan
    swarm.tell(sphere(swarm.ask()))
    swarm.best[0][:] = np.nan
    assert np.isfinite(swarm.ask()).all()
    assert np.isfinite(swarm.best[0]).all()


@EXAMPLES
@given(swarms(), st.integers(0, 12), st.integers(0, 2**32))
def test_goes_on_from_a_state_to_the_bit(chosen: PSO, steps: int, seed: int) -> None:
    def sequence(swarm: Swarm, length: int) -> list[bytes]:
        asked = []
        for _ in range(length):
            asked.append(swarm.ask().tobytes())
            swarm.tell(rastrigin(swarm.ask()))
        return asked

    swarm = swarm_of(chosen, seed=seed)
    sequence(swarm, steps)
    state = swarm.state()
    expected = sequence(swarm, 5)
    other = swarm_of(chosen, seed=seed + 1)
    other.restore(state)
    assert sequence(other, 5) == expected
    assert other.best[1] == swarm.best[1]
