"""Margins by the linear model of a log, against python-control's of the plant that made it."""

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.data import Batch
from clearloop.diagnosis.linearisation import Linearisation
from clearloop.diagnosis.margins import find_logged_margins, made_log
from clearloop.methods.linear_model import identify
from clearloop.task import Task
from tests.methods.planted import PLANTS, Planted


def law_of(plant: Planted, factor: float = 1.0) -> Equation:
    """The PI controllers that made the log, as equations that read the task's sums."""
    names = [f"y{k}" for k in range(plant.outputs)] if plant.outputs > 1 else ["y"]
    actions = [f"u{k}" for k in range(plant.outputs)] if plant.outputs > 1 else ["u"]
    loops = zip(names, actions, plant.gains, plant.resets, strict=True)
    return Equation(
        outputs={a: f"50 - {factor * kp}*{n} - {factor * kp / ti}*{n}_sum" for n, a, kp, ti in loops}
    )


def linear_law(plant: Planted, task: Task, factor: float = 1.0) -> Linearisation:
    s, a = len(task.states), len(task.actions)
    law = np.zeros((a, 1, s + a))
    for k in range(a):
        law[k, 0, [k, a + k]] = [-factor * plant.gains[k], -factor * plant.gains[k] / plant.resets[k]]
    nothing = np.zeros(s)
    return Linearisation(
        task=task, aims=nothing, point=nothing, action=np.zeros(a), drift=nothing, at_rest=False, smooth=True,
        moves=np.zeros((s, 1, s + a)), law=law, memory=0, modes=(),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["first_late", "second_late", "integrating_late", "unstable", "two"])
def test_the_margins_of_the_logged_controller_are_those_of_the_plant(name: str) -> None:
    plant = PLANTS[name]
    task = plant.task()
    log = plant.log(task, noise=0.01, size=1500)
    found = find_logged_margins(law_of(plant), linear_law(plant, task), identify(task, log), log)
    assert found.stable
    assert found.margins is not None
    for k, margin in enumerate(found.margins.actions):
        gain, phase = plant.margins(k)
        assert margin.gain_up == pytest.approx(gain, rel=0.1)
        assert margin.phase == pytest.approx(phase, rel=0.1)
        assert (margin.action, "phase") not in found.unknown


def test_a_controller_with_too_much_gain_is_called_unstable() -> None:
    plant = PLANTS["first_late"]
    task = plant.task()
    log = plant.log(task, noise=0.01, size=1500)
    factor = 2 * plant.margins(0)[0]
    found = find_logged_margins(
        law_of(plant, factor), linear_law(plant, task, factor), identify(task, log), log
    )
    assert found.stable is False
    assert found.why == ""


def test_a_controller_that_made_the_log_is_never_called_unstable() -> None:
    """The model is that of a log whose action has the wrong sign, as a wrong model would have it."""
    plant = PLANTS["first_late"]
    task = plant.task()
    log = plant.log(task, noise=0.01, size=1500)
    wrong = Batch(
        task.columns, log.states, 100 - log.actions, log.episodes, log.terminal, setpoints=log.setpoints
    )
    found = find_logged_margins(law_of(plant), linear_law(plant, task), identify(task, wrong), log)
    assert found.stable is None
    assert found.margins is None
    assert "it made the log" in found.why
    assert found.to_dict()["stable"] is None


def test_who_made_a_log_is_told_by_its_actions() -> None:
    plant = PLANTS["first"]
    task = plant.task()
    log = plant.log(task, noise=0.01, size=500)
    assert made_log(law_of(plant), task, log)
    assert not made_log(law_of(plant, 3.0), task, log)
    by_hand = plant.log(task, under="hand", size=500)
    assert not made_log(law_of(plant), task, by_hand)
