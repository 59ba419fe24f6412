"""The pace by a clock that tests turn by hand."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.studio.live import MOST_BEHIND, Pacer

DT = 0.025


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def run(pacer: Pacer, clock: Clock, delays: list[float]) -> list[float]:
    """When each step was taken; before it, others held the machine up for so long."""
    taken = []
    for delay in delays:
        clock.now += pacer.wait(DT) + delay
        taken.append(clock.now)
    return taken


def test_steps_come_at_the_rate_and_small_delays_do_not_add_up() -> None:
    clock = Clock()
    taken = run(Pacer(clock), clock, [0.004, 0.0, 0.011, 0.002] * 250)
    assert taken[-1] - 100 == pytest.approx(1000 * DT, abs=0.012)


def test_a_long_stall_is_let_go() -> None:
    clock = Clock()
    pacer = Pacer(clock)
    taken = run(pacer, clock, [0.0] * 10 + [3.0] + [0.0] * 40)
    after = [later - earlier for earlier, later in pairwise(taken[11:])]
    assert sum(gap < DT / 2 for gap in after) <= 1  # no burst of steps to catch up
    assert after[-1] == pytest.approx(DT)


def test_how_many_were_late_is_told_and_forgotten() -> None:
    clock = Clock()
    pacer = Pacer(clock)
    run(pacer, clock, [0.0] * 100)
    assert pacer.late == 0
    run(pacer, clock, [2 * DT] * 100)
    assert pacer.late > 0.4
    run(pacer, clock, [0.0] * 300)
    assert pacer.late == 0


@given(delays=st.lists(st.floats(0, 10), max_size=60))
def test_it_never_waits_longer_than_a_step_and_never_runs_faster_than_it_may(delays: list[float]) -> None:
    clock = Clock()
    pacer = Pacer(clock)
    for delay in delays:
        wait = pacer.wait(DT)
        assert 0 <= wait <= DT + 1e-9
        clock.now += wait + delay
    taken = len(delays)
    assert taken * DT <= clock.now - 100 + MOST_BEHIND * DT * (1 + sum(delay > 0 for delay in delays)) + 1e-9
