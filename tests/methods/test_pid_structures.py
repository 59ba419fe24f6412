"""Structures of PID controllers as blocks have them: which there are, and what a search makes of them."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.methods import Problem, Result, learn, snapshot
from clearloop.methods.linear_model import identify
from clearloop.methods.pid import PID
from clearloop.methods.pid_structures import Ground, Numbers, Seed, Structure
from clearloop.networks import Training
from clearloop.search.pso import PSO
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.steps import FailureEffect
from clearloop.task import Task
from tests.methods.linear_plants import make_log, make_model, make_task
from tests.surrogate.models import linear_network

QUICK = PID(rounds=2, starts=32, swarm=PSO(particles=8), generations=6)
TASK = make_task(
    0,
    states={"place": {"setpoint": "goal"}, "speed": {}, "load": {"external": True}},
    reward={"expression": "-abs(place.error) - 0.2*abs(u0 - u0[t-1])"},
    starts={"from": "batch"},
    history=2,
    robust={"late": 0, "noise": 0.0, "gain": 0.0},
)
"""A carriage that a force moves against a load; its speed is measured."""
CHANGE = np.array([[0.0, 0.1, 0.0, 0.0], [0.0, -0.3, -0.2, 0.5]])
"""of place and speed in a step, by place, speed, load and force"""


@cache
def carriage_log() -> Batch:
    rng = np.random.default_rng(4)
    states, goals, forces = np.zeros((40, 31, 3)), np.zeros((40, 31)), rng.uniform(-1, 1, (40, 31, 1))
    states[:, 0] = rng.uniform(-1, 1, (40, 3))
    goals[:] = rng.uniform(-1, 1, (40, 1))
    for k in range(30):
        states[:, k + 1] = states[:, k]
        states[:, k + 1, :2] += np.concatenate([states[:, k], forces[:, k]], axis=1) @ CHANGE.T
        states[:, k + 1, 2] += (k % 10 == 9) * rng.uniform(-1, 1, 40)
    return Batch(
        TASK.columns,
        states.reshape(-1, 3),
        forces.reshape(-1, 1),
        np.repeat(np.arange(40), 31),
        np.zeros(40 * 31, np.bool_),
        setpoints=goals.reshape(-1, 1),
    )


@cache
def carriage() -> Surrogate:
    member = tuple(linear_network(np.append(gains, np.zeros(4))) for gains in CHANGE)
    return Surrogate(
        task=TASK,
        track=replace(BEST, search=2, judge=1, training=Training(hidden=(16,))),
        dynamics=(member,) * 3,
        reward=KnownReward(TASK),
        failure=FailureEffect.of_all_states(2, altered=False),
        region=np.tile([-100.0, 100.0], (8, 1)),
        batch="",
        split_seed=0,
    )


@cache
def learned() -> tuple[Result, list[Any]]:
    """The result, and what the search was after each round."""
    kept: list[Any] = []
    result = learn(
        TASK, carriage_log(), QUICK, rng=np.random.default_rng(0), surrogate=carriage(),
        watch=lambda search, problem: kept.append((deepcopy(snapshot(search, problem)), search.candidates())),
    )  # fmt: skip
    return result, kept


def output_of(controller: Any) -> Any:
    return controller.outputs["u0"]


def ground(task: Task, batch: Batch, model: Surrogate, *seeds: Seed) -> Ground:
    problem = Problem(task, batch, model, budget=10**6, rng=np.random.default_rng(0), starts=8, robust=False)
    rest = np.zeros(0 if task.symmetric else len(task.actions))
    return Ground(problem, identify(task, batch), seeds, rest)


def test_each_structure_is_offered_beside_the_papers() -> None:
    _, kept = learned()
    names = [one.controller.name for one in kept[-1][1]]
    letters = ["PI", "PD", "PID"]
    cascades = [f"cascade, {one}" for one in ("PD over PD", "PI over P", "PI over PI")]
    scheduled = [
        f"{one}, gains by {state}{fed}"
        for state in ("place", "load")
        for one in ("PI", "PID")
        for fed in ("", ", with feed-forward")
    ]
    assert names == [None, *letters, *cascades, "PI with feed-forward", "PID with feed-forward", *scheduled]


def test_the_front_tells_which_structure_is_worth_its_complexity() -> None:
    result, kept = learned()
    front = result.front
    assert len(front) >= 3
    assert front["complexity"].is_sorted()
    assert front["penalty_model"].is_sorted(descending=True)
    assert front["formula"][0] in ("PI on place", "PD on place")
    assert len(set(front["formula"])) == len(front)
    paper, *blocks = kept[-1][1]
    assert min(one.penalty for one in blocks) < 0.85 * paper.penalty


def test_structures_read_what_they_are_named_for() -> None:
    _, kept = learned()
    found = {one.controller.name: one.controller for one in kept[-1][1]}
    fed = output_of(found["PID with feed-forward"])
    assert set(fed.feedforward) == {"place.setpoint", "load"}
    assert fed.bias != 0
    assert fed.loops[0].integral
    assert fed.loops[0].derivative_of == "measurement"
    cascade = output_of(found["cascade, PI over P"])
    assert (cascade.outer.input, cascade.inner.input) == ("place", "speed")
    assert cascade.outer.kp > 0
    assert cascade.inner.letters == "P"
    by_load = output_of(found["PI, gains by load"]).loops[0].schedule
    assert by_load.by == "load"
    assert by_load.at[0] < 0 < by_load.at[1]


def test_it_goes_on_in_the_midst_of_a_structure() -> None:
    result, kept = learned()
    again = learn(
        TASK, carriage_log(), QUICK, rng=np.random.default_rng(0), surrogate=carriage(), resume=kept[40][0]
    )
    assert again.front.equals(result.front)


def test_the_table_of_the_paper_has_the_papers_loops_only() -> None:
    assert PID.tabled == {"generations": 0}
    model = replace(carriage(), track=replace(carriage().track, name="published"))
    for settings, surrogate in ((replace(QUICK, generations=0), carriage()), (QUICK, model)):
        problem = ground(TASK, carriage_log(), surrogate).problem
        search = settings.begin(problem, rng=np.random.default_rng(0))
        while not search.done:
            search.advance()
        (only,) = search.candidates()
        assert output_of(only.controller).loops[0].integral is None


def test_a_descent_begins_at_the_numbers_of_the_closed_loop() -> None:
    seed = Seed("place", "u0", -2.5, 40.0, 5.0)
    for structure in ground(TASK, carriage_log(), carriage(), seed).structures():
        start, bounds = structure.box
        assert ((bounds[:, 0] <= start) & (start <= bounds[:, 1])).all()
        output = output_of(structure.controller(start))
        assert structure.controller(start).for_task(TASK)
        if output.outer is None:
            kp, ki, kd = output.loops[0].first_gains
            assert kp == pytest.approx(-2.5, rel=1e-3)
            assert ki == pytest.approx(-2.5 / 40 if "I" in structure.name[:3] else 0, rel=1e-3)
            assert kd == pytest.approx(-2.5 * 5 if "D" in structure.name[:3] else 0, rel=1e-3)
        else:  # the two gains together
            inner = output.inner.kp
            assert inner > 0
            assert output.outer.kp * inner == pytest.approx(-2.5, rel=1e-3)


def test_two_loops_of_an_action_add_up_or_are_a_cascade() -> None:
    task = make_task(2, symmetric=True)
    u, v = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    fast, slow = Seed("x1", "u0", 3.0, 10.0, 1.0), Seed("x0", "u0", 1.5, 40.0, 5.0)
    found = {
        one.name: output_of(one.controller(one.box[0]))
        for one in ground(task, make_log(task, u, v), make_model(task, u, v), fast, slow).structures()
    }
    assert [loop.input for loop in found["PD loops that add up"].loops] == ["x1", "x0"]
    assert len(found["PID"].loops) == 1
    cascade = found["cascade, PD over PD"]
    assert (cascade.outer.input, cascade.inner.input) == ("x0", "x1")
    assert cascade.outer.kp == pytest.approx(0.5)
    scheduled = found["PI loops that add up, gains by x1"].loops[0].schedule
    assert scheduled.at == (-scheduled.at[2], 0, scheduled.at[2])  # as symmetric as the plant
    assert all(output.bias == 0 for output in found.values())


def test_a_number_keeps_its_sign_and_its_bounds() -> None:
    def build(numbers: Numbers) -> dict[str, Any]:
        found = numbers.size(-0.02), numbers.level(3.0, 0.0, 2.0)
        return {"u0": {"loops": [{"input": "x0", "kp": found[0], "kd": found[1]}]}}

    structure = Structure("two numbers", build)
    start, bounds = structure.box
    assert start[1] == 2.0
    low, high = (output_of(structure.controller(end)).loops[0] for end in bounds.T)
    assert (low.kp, high.kp) == pytest.approx((-0.0002, -2.0))
    assert (low.kd, high.kd) == (0.0, 2.0)
