"""What comes from outside: signals as drawn, against a plain definition."""

import numpy as np
import pytest

from clearloop.task.plant import draw_signal
from clearloop.task.tables import Signal


@pytest.mark.parametrize("every", [(1, 1), (1, 4), (3, 7), (50, 90)])
def test_steps_hold_a_level_for_a_spell(every: tuple[int, int]) -> None:
    count, length = 5, 40
    drawn = draw_signal(Signal(steps=(-2.0, 3.0), every=every), count, length, np.random.default_rng(0))
    when, what = np.random.default_rng(0).spawn(2)
    pieces = 2 + length // every[0]
    spells = when.integers(*every, (count, pieces), endpoint=True)
    levels = what.uniform(-2.0, 3.0, (count, pieces))
    for n in range(count):
        expected = np.repeat(levels[n], spells[n])[:length]
        np.testing.assert_array_equal(drawn[n], expected)


def test_a_long_signal_that_changes_in_every_step_is_uniform() -> None:
    drawn = draw_signal(Signal(steps=(0.0, 1.0), every=(1, 1)), 50, 3_000, np.random.default_rng(1))
    assert len(np.unique(drawn)) == drawn.size
    np.testing.assert_allclose(np.histogram(drawn, 10, (0, 1))[0] / drawn.size, 0.1, atol=0.005)


def test_noise_has_the_deviation_that_is_asked_for() -> None:
    drawn = draw_signal(Signal(noise=0.3), 20, 1_000, np.random.default_rng(2))
    assert np.std(drawn) == pytest.approx(0.3, rel=0.03)
