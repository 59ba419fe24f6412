"""Linear loops with random numbers: each sum of the linearisation against one that is written out here."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Linear
from clearloop.evaluation.linearisation import (
    Linearisation,
    Mode,
    _kept,
    closed_loop,
    delayed,
    essential,
    find_slopes,
    is_stable,
    lengthened,
    linearise,
    loop_gains,
)
from clearloop.evaluation.stepping import Stepper
from clearloop.task import Task
from tests.diagnosis.plants import FIRST_ORDER
from tests.methods.linear_plants import make_task
from tests.surrogate.models import PUSHED, SLIDER, slider_model


def random_loop(seed: int, states: int, actions: int, rows: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    moves = rng.normal(size=(states, rows, states + actions))
    law = rng.normal(size=(actions, rows, states + actions))
    law[:, 0, states:] = 0.0  # the actions of the present row are those that the law is choosing
    moves[:, -1, 0] = law[:, -1, 0] = 0.0  # one column is read less far back
    return moves, law


@pytest.mark.parametrize("seed", range(6))
def test_one_step_of_the_matrix_is_one_step_of_system_and_law(seed: int) -> None:
    s, a, h = 2, 1 + seed % 2, 3
    moves, law = random_loop(seed, s, a, h)
    window = np.random.default_rng(99 + seed).normal(size=(h, s + a))
    window[0, s:] = np.einsum("ahw,hw->a", law, window)
    after = np.vstack([np.zeros(s + a), window[:-1]])
    after[0, :s] = np.einsum("shw,hw->s", moves, window)
    entries = _kept(moves, law)
    assert (2, 0) not in entries
    assert (2, 1) in entries
    now, then = (np.array([w[entry] for entry in entries]) for w in (window, after))
    np.testing.assert_allclose(closed_loop(moves, law) @ now, then, rtol=1e-10)


@pytest.mark.parametrize("size", [0.9, 0.995, 1.005, 1.1])
@pytest.mark.parametrize("states", [1, 2, 4])
def test_modes_close_together_near_the_unit_circle_are_counted(states: int, size: float) -> None:
    assert is_stable(size * np.eye(states)[:, None], np.zeros((0, 1, states))) is (size < 1)


def test_counting_turns_agrees_with_eigenvalues() -> None:
    told = []
    for seed in range(40):
        moves, law = random_loop(seed, 2, 1, 3)
        moves *= 0.1 + 0.4 * (seed % 2)
        largest = float(np.abs(np.linalg.eigvals(closed_loop(moves, law * 0.3))).max())
        assert abs(largest - 1) > 1e-3
        told.append(is_stable(moves, law * 0.3))
        assert told[-1] is (largest < 1)
    assert {True, False} == set(told)


@pytest.mark.parametrize("seed", range(8))
def test_a_loop_is_lost_where_its_response_times_the_gain_is_minus_one(seed: int) -> None:
    """At every eigenvalue of the loop whose law of one action is k times as strong, k L(z) = -1."""
    actions, a, k = 1 + seed % 3, seed % (1 + seed % 3), 1.7
    moves, law = random_loop(seed, 2, actions, 2)
    law[:, :, 2:] = 0.0
    stronger = law.copy()
    stronger[a] *= k
    z = np.linalg.eigvals(closed_loop(moves, stronger)).astype(complex)
    z = z[np.abs(z) > 1e-3]
    gains = loop_gains(moves, law, z)
    assert gains.shape == (actions, len(z))
    np.testing.assert_allclose(k * gains[a], -1.0, rtol=1e-6)


def test_the_response_is_that_of_negative_feedback_on_an_integrator() -> None:
    """z y = y + u with u = -0.5 y: L = 0.5 / (z - 1), at every point that is asked for."""
    z = np.exp(1j * np.linspace(0.1, 3.0, 7))
    found = loop_gains(np.array([[[1.0, 1.0]]]), np.array([[[-0.5, 0.0]]]), z)
    np.testing.assert_allclose(found, [0.5 / (z - 1)], rtol=1e-12)


def test_an_action_that_arrives_later_and_rows_of_nothing() -> None:
    moves = np.arange(1.0, 13.0).reshape(2, 2, 3)
    late = delayed(moves, 0, 2)
    assert late.shape == (2, 4, 3)
    np.testing.assert_array_equal(late[:, :2, :2], moves[:, :, :2])
    np.testing.assert_array_equal(late[:, 2:, 2], moves[:, :, 2])
    assert not late[:, :2, 2].any()
    assert not late[:, 2:, :2].any()
    np.testing.assert_array_equal(lengthened(moves, 2), moves)


def windows(rows: int, columns: int) -> tuple[Floats, Floats]:
    return np.random.default_rng(1).normal(size=(rows, columns)), np.array([1e-3, 1e-2, 1e-4, 1.0])[:columns]


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
def test_slopes_of_a_linear_function_are_its_gains(offset: float) -> None:
    gains = np.random.default_rng(0).normal(size=(3, 2, 4)) * 1e3
    window, steps = windows(2, 4)
    found = find_slopes(lambda w: offset + np.einsum("ohw,nhw->no", gains, w), window, steps)
    np.testing.assert_allclose(found.values, gains, rtol=1e-3)
    assert found.smooth


def test_a_kink_of_one_output_is_seen_beside_another_that_is_steep() -> None:
    window, steps = np.zeros((1, 2)), np.array([1e-3, 1e-3])

    def function(w: Floats) -> Floats:
        return np.stack([1e6 * w[:, 0, 0], np.abs(w[:, 0, 1])], axis=1)

    assert not find_slopes(function, window, steps).smooth
    assert find_slopes(lambda w: function(w)[:, :1], window, steps).smooth


def test_columns_are_compared_by_what_they_do_over_their_own_steps() -> None:
    """A kink of the second column is small beside the first one's slope, but not over a step of 1,000."""
    steps = np.array([1e-3, 1e3])

    def function(w: Floats) -> Floats:
        return (1e3 * w[:, 0, 0] + np.abs(w[:, 0, 1]))[:, None]

    assert not find_slopes(function, np.zeros((1, 2)), steps).smooth


def test_a_bend_is_found_at_two_sizes_of_steps() -> None:
    """Odd around the point, so that both sides are equally steep: only the shorter steps tell."""
    steps = np.array([1.0])
    assert not find_slopes(lambda w: np.clip(w[:, 0], -0.3, 0.3), np.zeros((1, 1)), steps).smooth


def test_a_function_of_many_values_is_asked_in_parts() -> None:
    """1,100 values are pushed up and down in parts, in their order."""
    gains = np.arange(1_100.0)
    found = find_slopes(lambda w: w[:, :, 0] @ gains[:, None], np.zeros((1_100, 1)), np.ones(1))
    np.testing.assert_allclose(found.values[0, :, 0], gains, rtol=1e-9, atol=1e-6)


def test_modes_in_seconds() -> None:
    for dt in (0.1, 2.0):
        assert Mode.of(0.5, dt).time_constant == pytest.approx(dt / np.log(2))
        lasting = Mode.of(complex(np.exp(0.3j)), dt)
        assert (lasting.time_constant, lasting.damping) == (None, 0.0)
        assert lasting.period == pytest.approx(2 * np.pi * dt / 0.3)
    assert Mode.of(1.5e-6, 0.1).time_constant is not None
    assert Mode.of(0.9e-6, 0.1).time_constant is None
    assert [Mode.of(value, 0.1).inside for value in (0.999, 1.0, 1.001)] == [True, False, False]


def known(moves: Floats, law: Floats, *values: float) -> Linearisation:
    task, nothing = make_task(2), np.zeros(2)
    return Linearisation(
        task=task, aims=nothing, point=nothing, action=np.zeros(1), drift=nothing, at_rest=True, smooth=True,
        moves=moves, law=law, memory=3, modes=tuple(Mode.of(value, 0.1) for value in values),
    )  # fmt: skip


def test_the_matrices_are_the_present_rows() -> None:
    moves, law = random_loop(5, 2, 1, 2)
    linear = known(moves, law, 0.5)
    np.testing.assert_array_equal(np.hstack([linear.states, linear.actions]), moves[:, 0])
    np.testing.assert_array_equal(linear.gains, law[:, 0, :2])
    assert linear.to_dict()["states"] == pytest.approx(linear.states, rel=1e-5)


def test_a_loop_is_stable_if_every_mode_dies_out() -> None:
    moves, law = random_loop(5, 2, 1, 2)
    assert known(moves, law, 0.9, 0.5).stable is True
    assert known(moves, law, 1.1, 0.5).stable is False
    assert replace(known(moves, law, 1.1), steady=True).stable is True
    assert replace(known(moves, law, 0.9), at_rest=False).stable is None
    assert replace(known(moves, law, 0.9), smooth=False).stable is None


@pytest.mark.parametrize(("pull", "rests"), [(-2.9, True), (2.9, True), (-3.1, False), (3.1, False)])
def test_a_place_of_rest_belongs_to_a_setpoint_within_three_spreads(pull: float, rests: bool) -> None:
    """y' = u - 2 p with u = -2 (y - 2): it rests at y = 2 - p."""
    tables = FIRST_ORDER.model_dump(mode="json", exclude_none=True)
    tables["plant"]["derivative"] = {"y": f"u - {2 * pull}"}
    task = Task.from_dict(tables)
    found = linearise(Linear(gains={"u": {"y": -2.0}}), task, spread=np.ones(1))
    assert found is not None
    assert found.at_rest is rests
    assert found.point[0] == pytest.approx(2.0 - pull if rests else 2.0)
    if rests:
        assert found.action[0] == pytest.approx(2.0 * pull)
        assert found.drift[0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("limit", "rests"), [(3.0, True), (1.9, False)])
def test_a_place_of_rest_needs_an_action_within_the_limits(limit: float, rests: bool) -> None:
    tables = FIRST_ORDER.model_dump(mode="json", exclude_none=True)
    tables["plant"]["derivative"] = {"y": "u - 2"}
    tables["actions"]["u"]["limits"] = [-limit, limit]
    found = linearise(Linear(gains={"u": {"y": -2.0}}), Task.from_dict(tables), spread=np.ones(1))
    assert found is not None
    assert found.at_rest is rests


WITH_SUMS = make_task(
    4,
    states={
        "x0": {}, "wind": {"external": True},
        "total": {"formula": "total[t-1] + x0"}, "twice": {"formula": "twice[t-1] + total"},
    },
    starts={"x0": [-1.0, 1.0]}, history=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("law_reads", "x0_reads", "kept"),
    [
        ([0], [], [0]),
        ([0, 2], [], [0, 2]),
        ([0], [2], [0, 2]),
        ([0, 3], [], [0, 2, 3]),  # the second sum reads the first
        ([0, 1], [1], [0]),  # an external state is an input, whoever reads it
    ],
)
def test_sums_that_nothing_reads_and_inputs_are_no_part_of_the_loop(
    law_reads: list[int], x0_reads: list[int], kept: list[int]
) -> None:
    moves, law = np.zeros((4, 2, 5)), np.zeros((1, 2, 5))
    moves[[0, 1, 2, 3], 0, [0, 1, 2, 3]] = moves[0, 0, 4] = moves[2, 0, 0] = moves[3, 0, 2] = 1.0
    moves[0, 1, x0_reads] = 0.5
    law[0, 1, law_reads] = -0.5
    fewer, read = essential(WITH_SUMS, moves, law)
    np.testing.assert_array_equal(fewer, moves[np.ix_(kept, [0, 1], [*kept, 4])])
    np.testing.assert_array_equal(read, law[:, :, [*kept, 4]])


def test_only_bare_steps_have_actions_beyond_the_limits() -> None:
    model, aims = slider_model(lambda gains: (gains, 0.0)), np.zeros((1, 2))
    for bare, push in ((False, 1.0), (True, 5.0)):
        moved = Stepper(SLIDER, aims, model, bare=bare)(np.array([[[0.0, 0.0, 5.0]]]), 0)
        assert moved.states == pytest.approx(push * PUSHED[None, :, 2])
