"""LQR: against SciPy's own Riccati solution, on plants that are known, and on the cart-pole."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from clearloop.arrays import Floats
from clearloop.controllers import Equation, Linear
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.methods import learn
from clearloop.methods.lqr import LQR, Design, design
from clearloop.plants.exploration import make_batch
from clearloop.task import Task

from .linear_plants import make_log, make_model, make_problem, make_task

CARTPOLE = Task.load("cartpole")
PUBLISHED = np.array([38.8, 10.1, 2.8, 3.9])
U = np.array([[1.1, 0.2], [-0.1, 0.7]])
V = np.array([[0.0], [0.5]])


def riccati(u: Floats, v: Floats, q: Floats, r: Floats) -> Floats:
    """K by SciPy, from the solution P of the equation in sec. 3.1."""
    p = solve_discrete_are(u, v, q, r)
    gain: Floats = np.linalg.solve(v.T @ p @ v + r, v.T @ p @ u)
    return gain


def designed(u: Floats, v: Floats, settings: LQR | None = None, noise: float = 0.0) -> Design:
    task = make_task(*v.shape)
    return design(task, make_log(task, u, v, noise=noise), settings or LQR())


def test_gains_solve_the_riccati_equation() -> None:
    found = designed(U, V, LQR(q={"x0": 3.0, "x1": 0.2}, r={"u0": 0.7}))
    expected = riccati(U, V, np.diag([3.0, 0.2]), np.array([[0.7]]))
    np.testing.assert_allclose(found.gain, expected, rtol=1e-6)
    controller = found.controller()
    assert isinstance(controller, Linear)
    np.testing.assert_allclose(list(controller.gains["u0"].values()), -expected[0], rtol=1e-5)
    assert list(controller.gains["u0"]) == ["x0", "x1"]


def test_the_closed_loop_is_kept_and_said() -> None:
    found = designed(U, V)
    expected = np.linalg.eigvals(U - V @ found.gain)
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(expected), atol=1e-8)
    assert (np.abs(found.eigenvalues) < 1).all()
    assert (np.diff(np.abs(found.eigenvalues)) <= 0).all()
    assert f"{found.eigenvalues[0].real:.3f}" in (found.controller().name or "")


def disturbed_log(task: Task, walk: bool) -> Batch:
    """x0' = 0.9 x0 + 0.1 u + 0.2 load, and x1 is the load: a random walk, or steps around 3."""
    rng = np.random.default_rng(0)
    rows = 2000
    load = np.cumsum(rng.normal(0, 0.05, rows)) if walk else 3 + np.repeat(rng.uniform(-1, 1, rows // 50), 50)
    u, x = rng.uniform(-20, 20, rows), np.zeros(rows)
    for row in range(rows - 1):
        x[row + 1] = 0.9 * x[row] + 0.1 * u[row] + 0.2 * load[row]
    return Batch(
        task.columns, np.stack([x, load], axis=1), u[:, None], np.zeros(rows, int), np.zeros(rows, np.bool_)
    )


@pytest.mark.parametrize("walk", [True, False], ids=["walk", "steps"])
def test_what_comes_from_outside_is_fed_forward(walk: bool) -> None:
    task = make_task(2, reach=20.0, states={"x0": {}, "x1": {"external": True}})
    found = design(task, disturbed_log(task, walk), LQR(q={"x0": 1.0}, r={"u0": 1e-4}))
    own, forward = -found.gain[0]
    constant = found.constant[0]
    for load in (2.0, -1.0):
        x = 0.0
        for _ in range(200):
            x = 0.9 * x + 0.1 * (own * x + forward * load + constant) + 0.2 * load
        assert abs(x) < 0.02 * abs(0.2 * load / 0.1)  # of what it would be without a controller
    assert forward == pytest.approx(-2.0, rel=0.05)


def test_two_actions() -> None:
    v = np.array([[0.3, 0.0], [0.1, 0.5]])
    found = designed(U, v, LQR(r={"u0": 1.0, "u1": 0.1}))
    np.testing.assert_allclose(found.gain, riccati(U, v, np.diag(found.q), np.diag([1.0, 0.1])), rtol=1e-6)


def test_a_plant_that_needs_its_past_gets_gains_for_it() -> None:
    task, log = make_task(1, history=3), make_log(make_task(2), U, V)
    seen = Batch(task.columns, log.states[:, :1], log.actions, log.episodes, log.terminal)
    found = design(task, seen, LQR(q={"x0": 1.0}, r={"u0": 0.1}))
    # Of x, the last x and the last action, by Cayley and Hamilton.
    u = np.array([[np.trace(U), -np.linalg.det(U), (U @ V)[0, 0]], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    v = np.array([[0.0], [0.0], [1.0]])
    expected = riccati(u, v, np.diag([1.0, 0.0, 0.0]), np.array([[0.1]]))
    np.testing.assert_allclose(found.gain, expected, rtol=1e-6)
    controller = found.controller()
    assert isinstance(controller, Linear)
    assert list(controller.gains["u0"]) == ["x0", "x0[t-1]", "u0[t-1]"]


def test_a_plant_that_rests_elsewhere_gets_a_constant() -> None:
    task = make_task(1, states={"x0": {"setpoint": 0.5}})
    u, v = np.array([[0.9]]), np.array([[0.2]])
    controller = design(task, make_log(task, u, v), LQR()).controller().for_task(task)
    assert isinstance(controller, Equation)
    action = controller.act({"x0": 0.5}, controller.reset())["u0"]
    assert action == pytest.approx(0.1 * 0.5 / 0.2, rel=1e-4)  # which holds it there
    assert controller.act({"x0": 0.7}, controller.reset())["u0"] < action


def test_an_integrator_needs_none_whatever_its_setpoint() -> None:
    task = make_task(1, states={"x0": {"setpoint": 0.5}})
    log = make_log(task, np.array([[1.0]]), np.array([[0.2]]))
    controller = design(task, log, LQR()).controller().for_task(task)
    assert isinstance(controller, Linear)
    assert controller.act({"x0": 0.5}, controller.reset())["u0"] == 0


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_state_that_no_action_moves_is_named_if_it_does_not_rest(noise: float) -> None:
    unstable = np.array([[0.9, 0.0, 0.1], [0.0, 1.1, 0.0], [0.0, 0.0, 0.5]])
    v = np.array([[0.5], [0.0], [0.0]])
    with pytest.raises(ClearloopError, match="uncontrollable: no action moves x1, which"):
        designed(unstable, v, noise=noise)
    found = designed(unstable * [[1, 1, 1], [1, 0.5, 1], [1, 1, 1]], v, noise=noise)
    assert np.abs(found.eigenvalues).max() < 1


def test_weights_that_leave_a_state_alone_are_refused() -> None:
    with pytest.raises(ClearloopError, match=r"lqr: (there are no gains|with these weights)"):
        designed(np.diag([1.0, 0.5]), np.array([[0.1], [1.0]]), LQR(q={"x0": 0.0, "x1": 0.0}))


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (LQR(q={"y": 1.0}), "lqr.q: 'y' is not a state"),
        (LQR(r={"x0": 1.0}), "lqr.r: 'x0' is not an action"),
    ],
)
def test_wrong_settings(settings: LQR, what: str) -> None:
    with pytest.raises(ClearloopError, match=what):
        designed(U, V, settings)


@pytest.mark.parametrize("seed", range(3))
def test_the_published_gains(seed: int) -> None:
    found = design(CARTPOLE, make_batch(CARTPOLE, rng=np.random.default_rng(seed)), LQR())
    np.testing.assert_allclose(found.q, [1, 0.1, 1, 0.1], rtol=1e-12)
    np.testing.assert_allclose(found.r, [0.1], rtol=1e-12)
    np.testing.assert_allclose(-found.gain[0], PUBLISHED, rtol=0.05)
    assert evaluate(found.controller(), CARTPOLE).penalty == pytest.approx(3.116, abs=0.05)


def test_other_units_give_the_same_controller() -> None:
    factors = np.array([1.0, 1.0, 1000.0, 1000.0])  # millimetres
    batch = make_batch(CARTPOLE, rng=np.random.default_rng(0), size=3000)
    tables = CARTPOLE.model_dump(mode="json", exclude={"plant", "exploration"})
    text = json.dumps(tables).replace("2.4", "2400").replace("0.5", "500")
    task = Task.from_dict(json.loads(text) | {"starts": {"theta": [-0.6, 0.6], "rho": [-1500.0, 1500.0]}})
    scaled = Batch(task.columns, batch.states * factors, batch.actions, batch.episodes, batch.terminal)
    found, usual = design(task, scaled, LQR()), design(CARTPOLE, batch, LQR())
    np.testing.assert_allclose(found.gain * factors, usual.gain, rtol=1e-6)


def test_more_caution_is_less_force() -> None:
    bold, careful = designed(U, V, LQR(caution=0.1)), designed(U, V, LQR(caution=1000.0))
    assert np.abs(bold.gain).max() > 1.5 * np.abs(careful.gain).max()


def test_learning_takes_one_round() -> None:
    task = make_task(2)
    batch, model = make_log(task, U, V), make_model(task, U, V)
    rounds = []
    result = learn(
        task,
        batch,
        LQR(),
        rng=np.random.default_rng(0),
        surrogate=model,
        robust=False,  # its penalty would have what it lacks of the margins
        watch=lambda search, _: rounds.append(search.best),
    )
    assert len(rounds) == 1
    assert len(result.points) == 1
    assert result.best.limits == {"u0": (-1.0, 1.0)}
    assert result.points[0].judged.penalty == pytest.approx(rounds[0], rel=0.05)


def test_a_search_goes_on_where_it_was() -> None:
    task = make_task(2)
    problem = make_problem(task, make_log(task, U, V), make_model(task, U, V))
    first = LQR().begin(problem, rng=np.random.default_rng(0))
    assert not first.done
    assert first.best == np.inf
    first.advance()
    second = LQR().begin(problem, rng=np.random.default_rng(0))
    second.restore(first.state())
    assert second.done
    assert second.best == first.best
    assert second.candidates() == first.candidates()


def test_settings_are_frozen() -> None:
    assert replace(LQR(), caution=2.0) != LQR()
    with pytest.raises(AttributeError):
        LQR().caution = 2.0  # type: ignore[misc]
