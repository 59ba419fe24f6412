"""Margins of loops that are written down, and what a log leaves unknown about them."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Linear
from clearloop.data import Batch
from clearloop.diagnosis import margins
from clearloop.diagnosis.margins import (
    LoggedMargins,
    Margin,
    Margins,
    _certain,
    _is_same,
    compare_margins,
    find_margins,
    made_log,
)
from clearloop.evaluation.linearisation import Linearisation, Mode, closed_loop, loop_gains
from tests.methods.linear_plants import make_task

from .plants import FIRST_ORDER, integrating


def loop(moves: Any, law: Any, dt: float = 0.1) -> Linearisation:
    moves, law = np.asarray(moves, float), np.asarray(law, float)
    nothing = np.zeros(len(moves))
    return Linearisation(
        task=make_task(len(moves), dt=dt), aims=nothing, point=nothing, action=np.zeros(1), drift=nothing,
        at_rest=True, smooth=True, moves=moves, law=law, memory=0, modes=(),
    )  # fmt: skip


@cache
def both(linear: Linearisation) -> tuple[Margin, Margin]:
    exact, quick = find_margins(linear), find_margins(linear, quick=True)
    assert exact is not None
    assert quick is not None
    return exact.actions[0], quick.actions[0]


INTEGRATOR_ONE_LATE = loop([[[1.0, 1.0], [0.0, 0.0]]], [[[0.0, 0.0], [-0.3, 0.0]]])
MEMORY = loop([[[0.9, 1.0]] + [[0.0, 0.0]] * 5], [[[-0.2, 0.0]] + [[-0.05, 0.0]] * 5])
UNSTABLE_PLANT = loop([[[1.2, 1.0]]], [[[-0.6, 0.0]]])
LIGHT = loop([[[0.5, 1.0]]], [[[-0.2, 0.0]]])


@pytest.mark.parametrize("linear", [INTEGRATOR_ONE_LATE, MEMORY, UNSTABLE_PLANT, LIGHT])
def test_quick_margins_are_those_by_many_frequencies(linear: Linearisation) -> None:
    exact, quick = both(linear)
    for name in ("gain_up", "gain_down", "phase"):
        one, other = getattr(exact, name), getattr(quick, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert other == pytest.approx(one, rel=5e-3), name


@pytest.mark.parametrize("linear", [INTEGRATOR_ONE_LATE, MEMORY, UNSTABLE_PLANT])
def test_gains_are_those_at_which_an_eigenvalue_leaves_the_unit_circle(linear: Linearisation) -> None:
    for margin in both(linear):
        for factor, inward in ((margin.gain_up, 0.98), (margin.gain_down, 1.02)):
            if factor is not None:
                largest = [
                    np.abs(np.linalg.eigvals(closed_loop(linear.moves, linear.law * factor * f))).max()
                    for f in (inward, 1 / inward)
                ]
                assert largest[0] < 1 < largest[1]
    assert (both(UNSTABLE_PLANT)[0].gain_down is None) is False


@pytest.mark.parametrize("gain", [0.2, 0.5, 0.77, 1.3])  # so that crossings lie anywhere between frequencies
def test_a_delay_that_need_not_be_whole_steps_is_the_phase_in_seconds(gain: float) -> None:
    """z y = y + u with u = -gain y: |L| = 1 where 2 sin(w dt / 2) = gain."""
    quick = find_margins(loop([[[1.0, 1.0]]], [[[-gain, 0.0]]], dt=2.0), quick=True)
    assert quick is not None
    half = np.arcsin(gain / 2)
    assert quick.actions[0].gain_up == pytest.approx(2 / gain, rel=1e-6)  # also between 1 and 2
    assert quick.actions[0].delay == pytest.approx(2.0 * (np.pi / 2 - half) / (2 * half), rel=1e-3)


@pytest.mark.parametrize("quick", [True, False])
def test_how_many_frequencies_are_asked(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    asked: list[int] = []

    def counting(moves: Floats, law: Floats, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        asked.append(len(z))
        return loop_gains(moves, law, z)

    monkeypatch.setattr(margins, "loop_gains", counting)
    find_margins(LIGHT, quick=quick)
    assert asked == [500 if quick else 4_000]


def test_a_loop_needs_to_be_smooth_and_at_rest() -> None:
    assert find_margins(LIGHT) is not None
    assert find_margins(replace(LIGHT, smooth=False)) is None
    assert find_margins(replace(LIGHT, at_rest=False)) is None


def test_the_words_of_margins() -> None:
    modes = (Mode.of(0.5, 0.1),)
    said = repr(Margins(modes, (Margin("u", 2.0, 0.25, 60.0, 0.5), Margin("v", None, None, None, None))))
    assert said == (
        "stable: largest eigenvalue 0.5000; u bears gain x 2, gain x 0.25 downwards, 60 degrees, delay 0.5 s;"
        " v bears any change"
    )
    assert not Margins((Mode.of(1.5, 0.1),), ()).stable
    assert Margins((), (), steady=True).stable
    assert not Margins((), (), steady=False).stable


def test_a_logged_margin_is_found_by_its_action() -> None:
    margin = Margin("u", 2.0, None, 60.0, 0.5)
    found = LoggedMargins(Margins((), (Margin("v", *[None] * 4), margin), steady=True), "", frozenset())
    assert found.margin("u") is margin
    assert found.margin("w") is None
    assert LoggedMargins(None, "why", frozenset()).margin("u") is None
    assert LoggedMargins(None, "why", frozenset()).stable is None
    assert found.stable is True


@pytest.mark.parametrize(
    ("value", "others", "known"),
    [
        (None, [None] * 38 + [3.0] * 2, True),  # one in twenty may have one
        (None, [None] * 37 + [3.0] * 3, False),
        (2.0, [2.0] * 38 + [None] * 2, True),
        (2.0, [2.0] * 37 + [None] * 3, False),
        (2.0, [1.65] * 20 + [2.35] * 20, True),  # half their distance is 0.35, of 2
        (2.0, [1.55] * 20 + [2.45] * 20, False),
        (-2.0, [-1.65] * 20 + [-2.35] * 20, True),
    ],
)
def test_a_margin_is_known_to_a_fifth(value: float | None, others: list[float | None], known: bool) -> None:
    assert _certain(value, others) is known


def logged(extra: Any = 0.0, offsets: Any = 0.0, rows: int = 10) -> Batch:
    """A log of u = -2 (y - 2) with something added: 40 episodes, the last row of each without an action."""
    rng = np.random.default_rng(0)
    n = 40 * rows
    states, episodes = rng.uniform(-3, 3, (n, 1)), np.arange(n) // rows
    actions = (
        -2 * (states - 2.0)
        + np.broadcast_to(offsets, 40)[episodes][:, None]
        + np.broadcast_to(extra, n)[:, None]
    )
    actions[rows - 1 :: rows] = np.nan
    return Batch(FIRST_ORDER.columns, states, actions, episodes, np.zeros(n, np.bool_))


def test_who_chose_the_actions_of_a_log() -> None:
    law, noise = integrating(2.0), np.random.default_rng(1).normal(size=400)
    assert made_log(law, FIRST_ORDER, logged()) is True
    assert made_log(integrating(-2.0), FIRST_ORDER, logged()) is False
    spread = float(np.nanstd(logged().actions))
    assert made_log(law, FIRST_ORDER, logged(extra=0.28 * spread * noise)) is True  # 8 % of the variance
    assert made_log(law, FIRST_ORDER, logged(extra=0.6 * spread * noise)) is True  # a signal that was added
    assert made_log(law, FIRST_ORDER, logged(extra=1.5 * spread * noise)) is False


@pytest.mark.parametrize("rows", [10, 3, 2])
def test_each_episode_may_have_begun_with_another_sum(rows: int) -> None:
    offsets = np.random.default_rng(2).normal(0, 4, 40)
    assert made_log(integrating(2.0), FIRST_ORDER, logged(offsets=offsets, rows=rows)) is True


@pytest.mark.parametrize(("stuck", "told"), [(0.5, True), (0.52, False)])
def test_a_log_that_is_mostly_at_its_limits_shows_nothing(stuck: float, told: bool) -> None:
    batch = logged()
    rows = np.flatnonzero(np.isfinite(batch.actions[:, 0]))
    actions = batch.actions.copy()
    actions[rows[: round(stuck * len(rows))], 0] = 1e5  # the upper limit
    assert made_log(integrating(2.0), FIRST_ORDER, replace(batch, actions=actions)) is told


def test_of_two_actions_both_must_be_those_of_the_law() -> None:
    task = make_task(1, 2)
    law = Linear(gains={"u0": {"x0": -0.5}, "u1": {"x0": 0.25}})
    rng = np.random.default_rng(3)
    states, episodes = rng.uniform(-1, 1, (60, 1)), np.arange(60) // 10
    actions = states @ np.array([[-0.5, 0.25]])
    actions[9::10, 1] = np.nan  # a row without one of its actions is left out
    batch = Batch(task.columns, states, actions, episodes, np.zeros(60, np.bool_))
    assert made_log(law, task, batch) is True
    swapped = replace(batch, actions=actions[:, ::-1].copy())
    assert made_log(law, task, swapped) is False


def _said_of(*margins: Margin, unknown: frozenset[tuple[str, str]] = frozenset()) -> LoggedMargins:
    return LoggedMargins(Margins((), margins, steady=True), "so" if unknown else "", unknown)


def test_margins_about_which_two_kinds_of_models_differ_are_unknown() -> None:
    logged = _said_of(Margin("u", 4.0, None, 60.0, 0.5), Margin("v", None, 0.02, 95.0, None))
    resting = _said_of(
        Margin("u", 4.8, None, 40.0, None),
        Margin("v", 12.0, 0.1, 130.0, None),
        unknown=frozenset({("u", "delay")}),
    )
    first, second = compare_margins(logged, resting)
    assert first.unknown == second.unknown == {("u", "phase"), ("u", "delay")}
    assert first.why == (
        "the linear model and the models at rest differ by more than 25 % about these: delay, phase"
    )
    assert second.why == (
        "so; the linear model and the models at rest differ by more than 25 % about these: phase"
    )
    assert first.margins is logged.margins


def test_margins_are_compared_only_where_both_kinds_of_models_have_some() -> None:
    logged, silent = _said_of(Margin("u", 4.0, None, 60.0, 0.5)), LoggedMargins(None, "why", frozenset())
    assert compare_margins(logged, silent) == (logged, silent)
    assert compare_margins(silent, logged) == (silent, logged)
    assert compare_margins(logged, logged) == (logged, logged)


def test_a_signal_that_was_added_to_a_law_does_not_make_it_another_law() -> None:
    rng = np.random.default_rng(0)
    chosen, added, episodes = rng.normal(size=900), rng.normal(size=900), np.repeat([0, 1, 2], 300)
    assert _is_same(chosen, chosen + np.array([3.0, -5.0, 9.0])[episodes], episodes)
    assert _is_same(chosen, chosen + 0.7 * added, episodes)  # it explains two thirds
    assert not _is_same(chosen, chosen + 1.5 * added, episodes)
    assert not _is_same(chosen, 0.7 * chosen, episodes)
    assert not _is_same(chosen, 1.5 * chosen, episodes)
    assert not _is_same(np.zeros(900), chosen, episodes)
