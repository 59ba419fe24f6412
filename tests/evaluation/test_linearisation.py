"""Closed loops whose eigenvalues are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm

from clearloop.arrays import Floats
from clearloop.controllers import Equation, Linear
from clearloop.controllers.pid import PID, Loop, Loops
from clearloop.evaluation.linearisation import Linearisation, closed_loop, is_stable, linearise
from clearloop.methods.lqr import LQR, design
from clearloop.plants.exploration import make_batch
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.diagnosis.plants import FIRST_ORDER, SPRING, integrating
from tests.methods.linear_plants import make_log, make_model, make_task
from tests.methods.test_lqr import U, V


def found(result: Linearisation | None) -> Linearisation:
    assert result is not None
    return result


def eigenvalues(result: Linearisation) -> Floats:
    """Magnitudes; pairs stand once."""
    return np.array([abs(mode.value) for mode in result.modes])


def on_the_spring(law: str) -> Linearisation:
    return found(linearise(Equation(outputs={"push": law}), SPRING, spread=np.ones(2)))


def test_the_plant_is_the_matrix_exponential() -> None:
    result = on_the_spring("-3*place - 2*speed")
    whole = expm(0.05 * np.array([[0, 1, 0], [-4, -0.4, 1], [0, 0, 0]]))
    np.testing.assert_allclose(result.states, whole[:2, :2], atol=1e-8)
    np.testing.assert_allclose(result.actions, whole[:2, 2:], atol=1e-8)
    np.testing.assert_allclose(result.gains, [[-3, -2]], atol=1e-8)
    closed = whole[:2, :2] + whole[:2, 2:] @ [[-3.0, -2.0]]
    np.testing.assert_allclose(
        result.modes[0].value, np.sort_complex(np.linalg.eigvals(closed))[1], atol=1e-8
    )
    assert result.at_rest
    assert result.stable
    assert result.memory == 0


def test_without_control_it_is_the_spring_itself() -> None:
    result = on_the_spring("0*place")
    (mode,) = result.modes
    assert mode.damping == pytest.approx(0.1, rel=1e-5)
    assert mode.period == pytest.approx(2 * np.pi / (2 * np.sqrt(1 - 0.01)), rel=1e-5)
    assert mode.time_constant == pytest.approx(5.0, rel=1e-5)
    assert not result.gains.any()


def test_pushing_the_wrong_way_is_unstable() -> None:
    result = on_the_spring("2*speed")
    assert result.stable is False
    assert result.modes[0].time_constant is not None
    assert result.modes[0].time_constant < 0


@pytest.mark.parametrize("gain", [1.0, 5.0, 15.0, 25.0])
def test_an_integrator_under_gain(gain: float) -> None:
    result = found(linearise(integrating(gain), FIRST_ORDER, spread=np.ones(1)))
    assert result.modes[0].value == pytest.approx(1 - 0.1 * gain, abs=1e-8)
    assert result.stable is (gain < 20)
    assert result.point.tolist() == [2.0]


def test_a_place_of_rest_far_from_the_setpoint_is_not_its_own() -> None:
    """The law rests at 0.25: within three spreads of 0.1, beyond three spreads of 0.05."""
    law = Equation(outputs={"push": "2 - 4*place - speed"})
    near, far = (found(linearise(law, SPRING, spread=np.array([s, 1.0]))) for s in (0.1, 0.05))
    assert near.at_rest
    assert not far.at_rest
    np.testing.assert_array_equal(far.point, [0.0, 0.0])
    assert far.stable is None


def test_where_a_loop_rests_beside_its_setpoint() -> None:
    """-4 place + 2 - 4 (place - 0) = 0 at place 0.25."""
    result = on_the_spring("2 - 4*place - speed")
    np.testing.assert_allclose(result.point, [0.25, 0.0], atol=1e-6)
    np.testing.assert_allclose(result.action, [1.0], atol=1e-5)
    assert result.at_rest
    assert result.stable


@pytest.mark.parametrize(("push", "rests"), [(0.9, True), (3.0, False)])
def test_every_action_must_be_within_its_limits_where_a_loop_rests(push: float, rests: bool) -> None:
    """x = 0.5 x + 0.1 push - 0.1 x: at a sixth of the push, where the other action is within its limits."""
    task = make_task(1, 2)
    model = make_model(task, np.array([[0.5]]), np.array([[0.1, 0.1]]))
    law = Equation(outputs={"u0": f"{push}", "u1": "-x0"})
    result = found(linearise(law, task, spread=np.ones(1), surrogate=model))
    assert result.at_rest is rests
    assert result.point == pytest.approx([push / 6 if rests else 0.0], abs=1e-6)


def test_actions_in_whole_steps_have_the_slopes_of_their_law() -> None:
    task = make_task(2, actions={"u0": {"limits": [-1, 1], "step": 0.5}})
    law = Linear(gains={"u0": {"x0": -0.3, "x1": -0.2}})
    result = found(linearise(law, task, spread=np.ones(2), surrogate=make_model(task, U, V)))
    assert result.law[0, 0, :2] == pytest.approx([-0.3, -0.2])
    assert result.smooth


def test_a_loop_that_rests_nowhere() -> None:
    drifting = Equation(outputs={"u": "1"})
    result = found(linearise(drifting, FIRST_ORDER, spread=np.ones(1)))
    assert not result.at_rest
    assert result.stable is None
    np.testing.assert_allclose(result.drift, [0.1])
    assert repr(result) == "does not rest at the setpoint"


@pytest.mark.parametrize("law", ["-sign(place)", "-abs(place) - speed", "if(place > 0, -3, -1)*place"])
def test_a_law_that_switches_where_it_rests(law: str) -> None:
    result = on_the_spring(law)
    assert not result.smooth
    assert result.stable is None


@pytest.mark.parametrize("law", ["-sin(place)", "-place - place**3", "-tanh(20*place) - speed"])
def test_curved_laws_are_smooth(law: str) -> None:
    assert on_the_spring(law).smooth


def test_lags_are_states() -> None:
    """y' = y + dt u, u = -k y[t-2]: z³ - z² + k dt = 0."""
    late = Linear(gains={"u": {"y[t-2]": -4.0}})
    result = found(linearise(late, FIRST_ORDER, spread=np.ones(1)))
    assert result.memory == 2
    roots = np.roots([1, -1, 0, 0.4])
    np.testing.assert_allclose(eigenvalues(result), sorted(np.abs(roots[roots.imag >= 0]))[::-1], atol=1e-7)


def test_a_law_that_reads_what_it_did() -> None:
    """y' = y + dt u, u' = -k y + u / 2."""
    smoothed = Linear(gains={"u": {"y": -4.0, "u[t-1]": 0.5}})
    result = found(linearise(smoothed, FIRST_ORDER, spread=np.ones(1)))
    assert result.memory == 1
    expected = np.linalg.eigvals([[1 - 0.4, 0.05], [-4.0, 0.5]])
    np.testing.assert_allclose(
        [result.modes[0].value, result.modes[0].value.conjugate()], np.sort_complex(expected)[::-1], atol=1e-7
    )


def test_the_window_of_a_pid_is_part_of_the_loop() -> None:
    """y' = y - dt (kp y + ki (y + y[t-1] + y[t-2]) + kd (y - y[t-1]))."""
    pid = PID(outputs={"u": Loops(loops=(Loop(input="y", kp=3.0, ki=0.5, kd=1.0, window=3),))})
    result = found(linearise(pid, FIRST_ORDER, spread=np.ones(1)))
    assert result.memory == 2
    roots = np.roots([1, -1 + 0.1 * (3 + 0.5 + 1), 0.1 * (0.5 - 1), 0.1 * 0.5])
    np.testing.assert_allclose(eigenvalues(result), sorted(np.abs(roots[roots.imag >= 0]))[::-1], atol=1e-7)


@pytest.mark.parametrize("gain", [0.5, 40.0])
def test_a_long_window_is_as_stable_as_its_eigenvalues_say(gain: float) -> None:
    """The loop with 1,100 steps has eigenvalues, the one with 5,000 does not; both are PI in effect."""
    stable = []
    for window in (1_100, 5_000):
        pid = PID(outputs={"u": Loops(loops=(Loop(input="y", kp=3.0, ki=gain, window=window),))})
        result = found(linearise(pid, FIRST_ORDER, spread=np.ones(1)))
        assert bool(result.modes) is (window == 1_100)
        stable.append(result.stable)
    assert stable == [gain < 1] * 2


def test_the_count_of_turns_tells_what_eigenvalues_tell() -> None:
    rng = np.random.default_rng(5)
    told = []
    for _ in range(60):
        moves, law = rng.normal(0, 0.45, (2, 3, 3)), rng.normal(0, 0.45, (1, 3, 3))
        law[:, 0, 2:] = 0.0
        largest = np.abs(np.linalg.eigvals(closed_loop(moves, law))).max()
        told.append(largest < 1)
        assert is_stable(moves, law) is bool(largest < 1)
    assert 5 < sum(told) < 55


def test_a_law_with_more_memory_than_can_be_examined_is_left_out() -> None:
    law = Linear(gains={"u": {"y": -1.0, "y[t-900]": -0.1, "u[t-900]": 0.1}})
    assert linearise(law, FIRST_ORDER, spread=np.ones(1)) is not None
    task = make_task(5)
    long = Linear(gains={"u0": {"x0": -1.0, "x0[t-999]": -0.1}})
    model = make_model(task, np.eye(5) * 0.5, np.ones((5, 1)))
    assert linearise(long, task, spread=np.ones(5), surrogate=model) is None


@settings(max_examples=30, deadline=None)
@given(numbers=arrays(np.float64, (3, 5), elements=st.floats(-1, 1).map(lambda x: round(x, 3))))
def test_any_linear_loop(numbers: Floats) -> None:
    """Rows: U of three states, V and, in the last column, the gains."""
    u, v, gains = numbers[:, :3], numbers[:, 3:4], numbers[:, 4]
    task = make_task(3, reach=100.0)
    law = Linear(gains={"u0": dict(zip(task.states, gains.tolist(), strict=True))})
    result = found(linearise(law, task, spread=np.ones(3), surrogate=make_model(task, u, v)))
    np.testing.assert_allclose(result.states, u, atol=1e-9)
    np.testing.assert_allclose(result.actions, v, atol=1e-9)
    np.testing.assert_allclose(result.gains[0], gains, atol=1e-9)
    np.testing.assert_allclose(
        np.abs(np.linalg.det(u + v * gains)),
        np.prod([abs(mode.value) ** (1 + (mode.value.imag > 0)) for mode in result.modes]),
        atol=1e-6,
    )
    assert result.point.tolist() == [0.0] * 3


def test_lqr_on_a_model_has_the_eigenvalues_that_it_says() -> None:
    task = make_task(2)
    made = design(task, make_log(task, U, V), LQR())
    result = found(
        linearise(made.controller(), task, spread=np.ones(2), surrogate=make_model(task, U, V), members=[2])
    )
    expected = made.eigenvalues[made.eigenvalues.imag >= 0]
    np.testing.assert_allclose([mode.value for mode in result.modes], expected, atol=1e-5)


def test_the_cart_pole_by_hand() -> None:
    """Upright, with θ̈ = (M g θ - u) / (4/3 M l - m l) and ρ̈ = (u - m l θ̈) / M."""
    inertia = 4 / 3 * 1.1 * 0.5 - 0.1 * 0.5
    swing, turn = 1.1 * 9.81 / inertia, -1 / inertia
    slopes = np.zeros((5, 5))
    slopes[0, 1] = slopes[2, 3] = 1
    slopes[1, [0, 4]] = swing, turn
    slopes[3, [0, 4]] = -0.05 * swing / 1.1, (1 - 0.05 * turn) / 1.1
    whole = expm(0.025 * slopes)
    result = found(linearise(KINDS["equation"], CARTPOLE, spread=np.array([0.4, 1.5, 1.3, 1.2])))
    np.testing.assert_allclose(result.states, whole[:4, :4], atol=1e-7)
    np.testing.assert_allclose(result.actions, whole[:4, 4:], atol=1e-7)
    closed = np.linalg.eigvals(whole[:4, :4] + whole[:4, 4:] @ [[69.8, 20, 10, 9.4]])
    expected = np.sort(np.abs(closed[closed.imag >= 0]))[::-1]
    np.testing.assert_allclose(eigenvalues(result), expected, atol=1e-6)
    assert result.stable


def test_lqr_on_the_cart_pole_says_nearly_what_is_so() -> None:
    """Its linear model is that of the whole log, not of the place where the pole stands upright."""
    batch = make_batch(CARTPOLE, rng=np.random.default_rng(0), size=3_000)
    made = design(CARTPOLE, batch, LQR())
    result = found(linearise(made.controller(), CARTPOLE, spread=batch.states.std(axis=0)))
    assert eigenvalues(result)[0] == pytest.approx(abs(made.eigenvalues[0]), abs=0.01)
    assert result.stable


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_asked(kind: str) -> None:
    result = found(linearise(KINDS[kind], CARTPOLE, spread=np.array([0.4, 1.5, 1.3, 1.2])))
    assert result.gains.shape == (1, 4)
    assert np.isfinite([abs(mode.value) for mode in result.modes]).all()
    assert set(result.to_dict()["point"]) == set(CARTPOLE.states)
