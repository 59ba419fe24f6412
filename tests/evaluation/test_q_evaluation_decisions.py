"""What controllers do in many situations at once is what they do one by one."""

import numpy as np
import pytest

from clearloop.controllers import Controller, Equation, Linear, encode
from clearloop.evaluation.q_evaluation import decisions
from clearloop.plants.scenarios import setpoint_table
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.plants.mixer import MIXER

BACK = Equation(
    outputs={"burner": "1 - heat[t-2] + 0.3*inlet[t-1]", "inlet": "0.4*level[t-1] - burner[t-2] + 0.2"},
    setpoint={"level": 0.75},
)
GAINS = Linear(gains={"burner": {"heat": -0.5, "level": 0.7}, "inlet": {"level[t-2]": -0.4}})


def ask(controller: Controller, task: Task, views: np.ndarray) -> np.ndarray:
    """[n, A]"""
    aims = setpoint_table(task, 1, controller.setpoint)
    found = decisions(encode([controller], task, history=task.history), task, views, aims)
    return np.asarray(found[0])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("pid", "planner")])
def test_at_first_sight(kind: str) -> None:
    """Then the past is the present, and nothing was done."""
    controller = KINDS[kind].for_task(CARTPOLE)
    task = CARTPOLE.model_copy(update={"history": controller.history})
    states = np.random.default_rng(0).normal(0, 0.3, (40, len(task.states)))
    expected = []
    for state in states:
        action = controller.act(dict(zip(task.state_names, state, strict=True)), controller.reset())
        expected.append([action[name] for name in task.action_names])
    past = [states, np.zeros((40, len(task.actions)))]
    views = np.hstack([states, *past * (task.history - 1)])
    np.testing.assert_allclose(ask(controller, task, views), expected, rtol=1e-9, atol=1e-9)
    assert len(np.unique(expected)) > 1


@pytest.mark.parametrize("controller", [BACK, GAINS], ids=["equation", "linear"])
def test_with_a_past(controller: Controller) -> None:
    """The view: the states, then states and actions of each lag."""
    controller = controller.for_task(MIXER)
    rng, memory = np.random.default_rng(1), controller.reset()
    states = rng.uniform(0, 1, (MIXER.history, 2))
    taken = []
    for state in states:
        action = controller.act(dict(zip(MIXER.state_names, state, strict=True)), memory)
        taken.append([action[name] for name in MIXER.action_names])
    past = [np.append(states[-1 - lag], taken[-1 - lag]) for lag in range(1, MIXER.history)]
    view = np.concatenate([states[-1], *past])[None]
    np.testing.assert_allclose(ask(controller, MIXER, view)[0], taken[-1], rtol=1e-9)


def test_a_population_in_single_precision() -> None:
    rows = [{"theta": 30.0, "rho": 2.0}, {"theta": -5.0, "theta_dot": 1.0}]
    population = [Linear(gains={"force": gains}).for_task(CARTPOLE) for gains in rows]
    views = np.random.default_rng(0).normal(0, 0.3, (300, 4)).astype(np.float32)
    policies = encode(population, CARTPOLE, history=1, dtype=np.float32)
    found = decisions(policies, CARTPOLE, views, setpoint_table(CARTPOLE, 1))
    assert found.shape == (2, 300, 1)
    assert found.dtype == np.float32
    expected = [np.clip(views @ gains, -10, 10) for gains in ([30, 0, 2, 0], [-5, 1, 0, 0])]
    np.testing.assert_allclose(found[:, :, 0], expected, rtol=1e-5, atol=1e-5)
