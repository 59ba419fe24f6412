"""What a planner decides: close to the best there is, with plans that go on from step to step."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Linear, Planner, load, save
from clearloop.errors import ClearloopError
from clearloop.evaluation import with_model
from clearloop.evaluation.planning import ModelPilot, Plans, pilot_of
from clearloop.surrogate.fitting import KnownReward
from clearloop.task import Task
from tests.evaluation.planners import CART, make_model, make_pilot, make_planner

WINDOW = np.array([[1.0, -0.5, 0.0, 1.25, -0.5, 0.5], [-1.5, 0.25, 0.0, -1.5, 0.0, -1.0]])
"""of two carts: place, speed, push, and the same a step before"""
NOWHERE = np.zeros(2)


def cost(window: Floats, pushes: Any, aim: float = 0.0) -> float:
    """Of a plan for a cart, in plain Python."""
    place, speed, _, _, _, late = window.tolist()
    total = 0.0
    for step, push in enumerate(pushes):
        place, speed, late = place + 0.5 * speed, 0.75 * speed + 0.5 * late, push
        total += 0.9**step * abs(place - aim)
    return total


def pushes(pilot: ModelPilot, plans: Plans, plant: int = 0, number: int = 0) -> Floats:
    low, high = pilot.limits[0]
    shares: Floats = low + plans.shares[number, plant, :, 0] * (high - low)
    return shares


def test_it_finds_what_trying_everything_finds() -> None:
    pilot = make_pilot("cart", horizon=5, particles=40, rounds=40)
    plans = pilot.decide(WINDOW, NOWHERE)
    levels = np.linspace(-1.0, 2.0, 7)
    for plant, window in enumerate(WINDOW):
        best = min(cost(window, [*plan, 0, 0]) for plan in product(levels, repeat=3))  # two act too late
        assert cost(window, pushes(pilot, plans, plant)) <= best + 1e-6
        costs = [cost(window, pushes(pilot, plans, plant, number)) for number in range(40)]
        np.testing.assert_allclose(costs, sorted(costs), atol=1e-6)  # the best first


def test_setpoints_are_aimed_at() -> None:
    pilot = make_pilot("cart", horizon=8, particles=40, rounds=40)
    plans = pilot.decide(WINDOW, np.array([2.5, 0.0]))
    assert cost(WINDOW[0], pushes(pilot, plans), 2.5) < cost(WINDOW[0], [2.0] * 3 + [0.0] * 5, 2.5)


def test_an_action_is_kept_for_steps_that_are_counted_from_the_start() -> None:
    pilot = make_pilot("cart", horizon=10, hold=4)
    plans = pilot.decide(WINDOW, NOWHERE)
    for changes in ([3, 7], [2, 6], [1, 5], [0, 4, 8], [3, 7]):
        found = np.flatnonzero(np.diff(plans.shares, axis=2).any(axis=(0, 1, 3)))
        assert found.tolist() == changes
        plans = pilot.decide(WINDOW, NOWHERE, plans)


def test_what_is_left_of_a_plan_is_a_plan_of_the_next_step() -> None:
    pilot = make_pilot("cart", horizon=9, hold=3, rounds=1, carried=1.0, fresh=0.0)
    first = pilot.decide(WINDOW, NOWHERE)
    second = pilot.decide(WINDOW, NOWHERE, first)
    assert second.step == 1
    given = np.concatenate([first.shares[:, :, 1:], first.shares[:, :, -1:]], axis=2)
    np.testing.assert_array_equal(np.sort(second.shares, axis=0), np.sort(given, axis=0))


def test_a_plan_does_not_get_worse() -> None:
    """On a plant that is the model, the best plan is at least what is left of the last one."""
    pilot = make_pilot("cart", horizon=8, hold=2)
    window, plans = WINDOW[:1], None
    for _ in range(5):
        plans = pilot.decide(window, NOWHERE, plans)
        rest = pushes(pilot, plans.rest())
        place, speed, _, _, _, late = window[0]
        push = pilot.first(plans)[0, 0]
        window = np.array([[place + 0.5 * speed, 0.75 * speed + 0.5 * late, 0.0, place, speed, push]])
        again = pilot.decide(window, NOWHERE, plans)
        assert cost(window[0], pushes(pilot, again)) <= cost(window[0], rest) + 1e-6


def test_plants_beside_it_do_not_matter() -> None:
    pilot = make_pilot("cart", horizon=8, hold=2)
    both = pilot.decide(WINDOW, NOWHERE)
    both = pilot.decide(WINDOW + 0.125, NOWHERE, both)
    for plant in range(2):
        mine = WINDOW[plant : plant + 1]
        alone = pilot.decide(mine + 0.125, NOWHERE, pilot.decide(mine, NOWHERE))
        np.testing.assert_array_equal(alone.shares[:, 0], both.shares[:, plant])


def test_another_seed_is_another_search() -> None:
    one, other = (make_pilot("cart", seed=seed).decide(WINDOW, NOWHERE) for seed in (0, 1))
    assert (one.shares != other.shares).any()


def test_it_stops_when_nothing_can_be_better() -> None:
    pilot = make_pilot("slider", horizon=5, particles=7, rounds=50, members=2)
    pilot.decide(np.array([[0.0, 0.0, 0.0], [4.75, 4.0, 0.0]]), NOWHERE)  # the second one fails in any case
    assert pilot.spent == 7 * 5 * 2 * (50 + 1)


def test_failure_goes_on_costing_after_the_end_of_a_plan() -> None:
    later = sum(0.9**k for k in range(4, 15))
    assert make_pilot("slider", horizon=4).bill == pytest.approx(later)
    assert make_pilot("slider", horizon=15).bill == 0.0
    assert make_pilot("slider", horizon=4, absorbing=False).bill == 0.0


def test_a_narrower_limit_of_the_controller_holds() -> None:
    planner = make_planner("cart").model_copy(update={"limits": {"push": (-0.5, 0.25)}})
    pilot = ModelPilot(planner.for_task(CART), CART, make_model("cart"))
    chosen = pushes(pilot, pilot.decide(WINDOW, NOWHERE))
    assert chosen.min() >= -0.5
    assert chosen.max() <= 0.25


def test_a_model_needs_the_members_that_are_asked_for() -> None:
    with pytest.raises(ClearloopError, match="members: the model has 2 members to plan with, not 3"):
        make_planner("cart", members=3)


def test_its_model_is_that_of_its_run(tmp_path: Path) -> None:
    make_model("cart").save(tmp_path / "surrogate")
    (tmp_path / "controllers").mkdir()
    save(make_planner("cart"), tmp_path / "controllers" / "001.json")
    ready = with_model(load(tmp_path / "controllers" / "001.json"), CART)
    observation = {"place": 1.0, "speed": -0.5}
    mine = make_planner("cart")
    assert ready.act(observation, ready.reset()) == mine.act(observation, mine.reset())
    assert with_model(ready, CART) is ready


def test_without_a_run_one_line_says_so(tmp_path: Path) -> None:
    save(Planner(run="gone", outputs=("push",), horizon=5), tmp_path / "planner.json")
    with pytest.raises(
        ClearloopError, match=r"^planner: there is no model in its run 'gone': [^\n]*cannot be read[^\n]*$"
    ):
        with_model(load(tmp_path / "planner.json"), CART)


def test_other_controllers_need_no_model() -> None:
    linear = Linear(gains={"push": {"place": -1.0}})
    assert with_model(linear, CART) is linear


def test_plans_are_made_of_the_steps_that_the_task_allows() -> None:
    tables = CART.model_dump(mode="json")
    tables["actions"]["push"]["step"] = 0.75
    task = Task.from_dict(tables)
    model = replace(make_model("cart"), task=task, reward=KnownReward(task))
    planner = Planner(run="..", outputs=task.action_names, horizon=5, particles=40, rounds=40)
    pilot = pilot_of(with_model(planner, task, model))
    assert pilot is not None
    plans = pilot.decide(WINDOW, NOWHERE)
    levels = [-1.0, -0.25, 0.5, 1.25, 2.0]
    assert set(pilot.first(plans).ravel().tolist()) <= set(levels)
    for plant, window in enumerate(WINDOW):
        best = min(cost(window, [*plan, 0, 0]) for plan in product(levels, repeat=3))
        chosen = [levels[math.floor(4 * share + 0.5)] for share in plans.shares[0, plant, :, 0]]
        assert cost(window, chosen) <= best + 1e-6
