"""Margins of many loops at once, against python-control and against eigenvalues."""

import control
import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.evaluation.stability import (
    LoopMargins,
    bears,
    find_loop_margins,
    frequencies,
    respond,
)

FINE = frequencies(2_000, 100)


def loop(seed: int) -> tuple[Floats, Floats, Floats]:
    """A random plant A, B, often unstable, and the gains of a linear quadratic regulator, a little off."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    a = rng.normal(size=(n, n))
    a *= rng.uniform(0.5, 1.15) / np.abs(np.linalg.eigvals(a)).max()
    b = rng.normal(size=(n, 1))
    gain, _, _ = control.dlqr(a, b, np.eye(n), np.eye(1))
    return a, b, -gain * rng.uniform(0.8, 1.2)


def margins(a: Floats, b: Floats, k: Floats, angles: Floats = FINE) -> LoopMargins:
    moves = np.concatenate([a, b], axis=1)[:, None]
    return find_loop_margins(respond(moves, angles), np.asarray(k)[None, None])


@pytest.mark.parametrize("seed", range(10))
def test_margins_of_linear_plants_are_those_of_python_control(seed: int) -> None:
    a, b, k = loop(seed)
    found = margins(a, b, k)
    _, phase, stability, _, _, _ = control.stability_margins(control.ss(a, b, -k, 0, 1.0))
    assert found.stable[0]
    assert found.ms[0] == pytest.approx(1 / stability, rel=0.01)
    if np.isfinite(phase):
        assert found.phase[0] <= abs(phase) + 0.5  # the nearest crossing, on both sides
    factor = found.gain[0]
    if np.isfinite(factor):
        assert np.abs(np.linalg.eigvals(a + 0.999 * factor * b @ k)).max() < 1 + 1e-6
        assert np.abs(np.linalg.eigvals(a + 1.01 * factor * b @ k)).max() > 1


def test_stability_is_that_of_the_eigenvalues_even_on_the_coarse_grid_of_a_search() -> None:
    rng, said = np.random.default_rng(0), []
    for seed in range(150):
        a, b, k = loop(seed)
        k = k * rng.uniform(0, 3)
        truth = np.abs(np.linalg.eigvals(a + b @ k)).max() < 1
        said.append((bool(margins(a, b, k, frequencies(64, 100)).stable[0]), bool(truth)))
    assert np.mean([one == other for one, other in said]) > 0.99
    assert {other for _, other in said} == {True, False}


def test_a_delay_margin_is_a_delay_that_the_loop_bears() -> None:
    """An integrator under u = -g x with g small: L = g / (z - 1), |L| = 1 at about g, so the delay is about
    (pi / 2) / g - 1/2 steps."""
    a, b, k = np.eye(1), np.eye(1), np.array([[-0.05]])
    found = margins(a, b, k)
    assert found.delay[0] == pytest.approx(np.pi / 2 / 0.05 - 0.5, rel=0.01)
    response, seen = respond(np.concatenate([a, b], axis=1)[:, None], FINE), k[None, None]
    most = int(found.delay[0])
    assert bears(response, seen, 0.0, 0, most)
    assert not bears(response, seen, 0.0, 0, most + 1)


def test_a_population_has_the_margins_of_its_members() -> None:
    a, b, k = loop(3)
    response = respond(np.concatenate([a, b], axis=1)[:, None], FINE)
    together = find_loop_margins(response, np.stack([0.7 * k, k, 1.1 * k])[:, None])
    for n, share in enumerate((0.7, 1.0, 1.1)):
        for one, alone in zip(together, margins(a, b, share * k), strict=True):
            assert one[n] == pytest.approx(alone[0], rel=1e-9)


def test_two_loops_that_do_not_meet_have_the_margins_of_the_weaker() -> None:
    one, other = loop(1), loop(4)
    zeros = np.zeros((len(one[0]), len(other[0])))
    a = np.block([[one[0], zeros], [zeros.T, other[0]]])
    b = np.block([[one[1], np.zeros_like(one[1])], [np.zeros_like(other[1]), other[1]]])
    k = np.block([[one[2], np.zeros_like(other[2])], [np.zeros_like(one[2]), other[2]]])
    together, apart = margins(a, b, k), [margins(*one), margins(*other)]
    assert together.stable[0]
    assert together.ms[0] == pytest.approx(max(each.ms[0] for each in apart), rel=1e-6)
    for name in ("phase", "gain", "delay"):
        assert getattr(together, name)[0] == pytest.approx(min(getattr(e, name)[0] for e in apart), rel=1e-6)
