"""Margins by the linear model of a log, against python-control's of the plant that made it."""

import numpy as np
import pytest

from clearloop.controllers import PID, Equation
from clearloop.controllers.loops import Loop, Loops
from clearloop.data import Batch
from clearloop.diagnosis.margins import (
    LoggedMargins,
    Margin,
    Margins,
    find_law_margins,
    find_logged_margins,
    made_log,
    margin_words,
)
from clearloop.evaluation.linearisation import Linearisation
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


def test_the_margins_of_a_pid_need_no_other_model_than_that_of_the_log() -> None:
    plant = PLANTS["first_late"]
    task = plant.task()
    log = plant.log(task, noise=0.01, size=1500)
    kp, ki = plant.gains[0], plant.gains[0] / plant.resets[0] * task.dt
    pid = PID(outputs={"u": Loops(bias=50.0, loops=(Loop(input="y", kp=kp, ki=ki, integral=True),))})
    found = find_law_margins(pid, identify(task, log), log)
    assert found is not None
    assert found.margins is not None
    gain, phase = plant.margins(0)
    assert found.margins.actions[0].gain_up == pytest.approx(gain, rel=0.1)
    assert found.margins.actions[0].phase == pytest.approx(phase, rel=0.1)
    (words,) = margin_words(found)
    assert words.startswith("u: gain margin x ")
    assert "phase margin" in words
    assert find_law_margins(law_of(plant), identify(task, log), log) is None


def test_words_about_margins_say_what_is_unknown() -> None:
    margin = Margin("u", 4.0, None, 50.0, 0.3)
    known = Margins((), (margin,), steady=True)
    found = LoggedMargins(known, "the log does not tell these to 20 %: delay", frozenset({("u", "delay")}))
    assert margin_words(found) == [
        "u: gain margin x 4, phase margin 50 degrees.",
        "The log does not tell these to 20 %: delay.",
    ]
    assert margin_words(LoggedMargins(Margins((), (), steady=False), "", frozenset())) == [
        "The loop is unstable."
    ]


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
