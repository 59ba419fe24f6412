"""What a lane does depends neither on its neighbours nor on who runs it."""

from typing import Any

import numpy as np
import pytest

from clearloop.kernels.engine import Rollout, roll_out
from tests.kernels.populations import KINDS, STEPS, alone, make_population, make_rig, make_system

# controllers × starts: less than a tile, just a tile, more; tiles of many controllers and of parts of one
SHAPES = [(1, 1), (1, 99), (100, 1), (1, 127), (2, 64), (43, 3), (5, 51), (256, 1), (1, 256), (1, 257)]
SHAPES += [(257, 1), (7, 37), (10, 100), (3, 300)]

every_kind = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def make_starts(count: int) -> Any:
    return np.random.default_rng(count).normal(0, 1, (count, 2))


def assert_close(found: Rollout, expected: Rollout, dtype: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one is not None
        assert other is not None
        assert one.shape == other.shape
        if dtype == np.float64:
            assert np.array_equal(one, other)
        elif one.dtype == dtype:
            close = np.isclose(one, other, rtol=1e-5, atol=1e-5)
            assert close.mean() > 0.99  # a reward may fall on the other side of two equal classes


@both
@every_kind
def test_a_controller_in_a_population_does_what_it_does_alone(kind: str, dtype: Any) -> None:
    system, rig = make_system(dtype), make_rig(dtype)
    for population, starts in SHAPES:
        job = rig.job(make_starts(starts), STEPS, 0.9)
        policies = make_population(kind, population, starts, dtype)
        together = roll_out(policies, system, job, trajectories=True)
        assert together.returns.shape == (2, population, starts)
        for p in sorted({0, 1, population // 2, population - 1} & set(range(population))):
            single = roll_out(alone(policies, p, starts), system, job, trajectories=True)
            part = Rollout(*(array[:, p : p + 1] for array in together if array is not None))
            assert_close(part, single, dtype)


@both
@every_kind
def test_a_start_among_others_does_what_it_does_alone(kind: str, dtype: Any) -> None:
    system, rig, starts = make_system(dtype), make_rig(dtype), make_starts(300)
    policies = make_population(kind, 1, 300, dtype)
    together = roll_out(policies, system, rig.job(starts, STEPS), trajectories=True)
    for n in (0, 1, 15, 17, 255, 256, 299):
        own = policies._replace(numbers=policies.numbers[n : n + 1]) if kind == "sequence" else policies
        single = roll_out(own, system, rig.job(starts[n : n + 1], STEPS), trajectories=True)
        part = Rollout(*(array[:, :, n : n + 1] for array in together if array is not None))
        assert_close(part, single, dtype)


@both
@every_kind
def test_threads_do_not_matter(kind: str, dtype: Any) -> None:
    job = make_rig(dtype).job(make_starts(100), STEPS, 0.9)
    policies = make_population(kind, 41, 100, dtype)
    first, *others = (
        roll_out(policies, make_system(dtype), job, trajectories=True, workers=n) for n in (1, 2, 7)
    )
    expected = [array.tobytes() for array in first if array is not None]
    assert len(expected) == 6
    for other in others:
        assert [array.tobytes() for array in other if array is not None] == expected


@both
@every_kind
def test_the_population_is_diverse(kind: str, dtype: Any) -> None:
    """So that a mix-up of lanes, controllers or members would show above."""
    job = make_rig(dtype).job(make_starts(64), STEPS, 0.9)
    rollout = roll_out(make_population(kind, 16, 64, dtype), make_system(dtype), job, trajectories=True)
    assert rollout.states is not None
    last = rollout.states[..., -1, :].reshape(-1, 2)
    assert len(np.unique(last, axis=0)) > len(last) // 2
    assert 0 < rollout.failed.mean() < 1


@both
@every_kind
def test_recording_does_not_change_returns(kind: str, dtype: Any) -> None:
    job = make_rig(dtype).job(make_starts(70), STEPS, 0.9)
    policies = make_population(kind, 9, 70, dtype)
    recorded = roll_out(policies, make_system(dtype), job, trajectories=True)
    plain = roll_out(policies, make_system(dtype), job)
    assert plain.states is None
    assert plain.actions is None
    assert plain.rewards is None
    assert (plain.returns == recorded.returns).all()
    assert (plain.failed == recorded.failed).all()
