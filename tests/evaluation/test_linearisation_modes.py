"""Eigenvalues in seconds."""

import math

import numpy as np
import pytest

from clearloop.evaluation.linearisation import Mode, find_modes


def test_one_that_creeps() -> None:
    mode = Mode.of(math.exp(-0.1 / 0.7), dt=0.1)
    assert mode.time_constant == pytest.approx(0.7)
    assert mode.damping is mode.period is None
    assert mode.inside


@pytest.mark.parametrize(("omega", "dt"), [(3.0, 0.05), (0.01, 0.05), (0.01, 10.0)])
@pytest.mark.parametrize("damping", [0.1, 0.7, -0.2])
def test_one_that_swings(damping: float, omega: float, dt: float) -> None:
    s = complex(-damping * omega, omega * math.sqrt(1 - damping**2))
    mode = Mode.of(complex(np.exp(s * dt)), dt)
    assert mode.damping == pytest.approx(damping)
    assert mode.period == pytest.approx(2 * math.pi / s.imag)
    assert mode.time_constant == pytest.approx(-1 / s.real)
    assert mode.inside is (damping > 0)


def test_every_other_step() -> None:
    mode = Mode.of(-0.5, dt=0.1)
    assert mode.period == pytest.approx(0.2)
    assert mode.time_constant == pytest.approx(0.1 / math.log(2))


def test_what_is_small_after_one_step_still_has_a_time_constant() -> None:
    assert Mode.of(1e-3, dt=2.0).time_constant == pytest.approx(2.0 / math.log(1e3))


def test_at_once_and_never() -> None:
    assert Mode.of(0.0, 0.1) == Mode(0.0, None, None, None)
    assert not Mode.of(1.0, 0.1).inside
    assert Mode.of(1.0, 0.1).time_constant is None
    assert Mode.of(1j, 0.1).damping == 0.0


def test_the_slowest_is_first_and_pairs_stand_once() -> None:
    matrix = np.zeros((4, 4))
    matrix[:2, :2] = [[0.3, 0.4], [-0.4, 0.3]]
    matrix[2:, 2:] = np.diag([-0.9, 0.1])
    values = [mode.value for mode in find_modes(matrix, 0.1)]
    assert values == pytest.approx([-0.9, 0.3 + 0.4j, 0.1])


def test_a_mode_as_json_values() -> None:
    mode = Mode.of(complex(0.6, 0.3), 0.1)
    assert mode.to_dict() == {
        "real": 0.6, "imaginary": 0.3, "magnitude": pytest.approx(np.hypot(0.6, 0.3), rel=1e-5),
        "time_constant": pytest.approx(mode.time_constant, rel=1e-5),
        "damping": pytest.approx(mode.damping, rel=1e-5), "period": pytest.approx(mode.period, rel=1e-5),
    }  # fmt: skip
    assert Mode.of(1.0, 0.1).to_dict()["time_constant"] is None
