"""`--stay`: the distance from the log as a part of the penalty that is searched and judged."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import PID, Controller, Equation, encode
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.methods import Candidate, Problem
from clearloop.methods.gprl import GPRL
from clearloop.methods.learning import judge, learn
from clearloop.methods.staying import LoggedActions, departure
from clearloop.search.gp.genome import GP
from tests.methods.linear_plants import make_log, make_model, make_task

TASK = make_task(2, history=2)
U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
NOISE = 0.05
"""standard deviation of what the logged law leaves"""


def logged_law(batch: Batch) -> Batch:
    """Return the log with the actions of a law, and a little noise."""
    actions = 0.4 * batch.states[:, :1] - 0.3 * batch.states[:, 1:]
    actions = actions + np.random.default_rng(5).normal(0, NOISE, actions.shape)
    return replace(batch, actions=actions)


BATCH = logged_law(make_log(TASK, U, V))
MODEL = make_model(TASK.model_copy(update={"history": 1}), U, V)
LOG, GOOD = "0.4*x0 - 0.3*x1", "-3*x0 - 3*x1"


def law(text: str) -> Equation:
    return Equation(outputs={"u0": text})


def problem(stay: float) -> Problem:
    task = make_task(2)
    return Problem(
        task, BATCH, MODEL, budget=10**9, rng=np.random.default_rng(0), starts=64, robust=False, stay=stay
    )


def penalties(stay: float, *laws: str) -> list[float]:
    asked = problem(stay)
    policies = [encode([law(text)], asked.task, history=asked.history, dtype=np.float32) for text in laws]
    return [float(asked.penalties(one, starts=64)[0]) for one in policies]


def test_the_law_of_the_log_departs_by_its_noise_alone() -> None:
    logged = LoggedActions(TASK, BATCH)
    variance = float(BATCH.actions.var())
    assert departure(law(LOG), logged) == pytest.approx(NOISE**2 / variance, rel=0.25)
    assert departure(law(str(BATCH.actions.mean())), logged) == pytest.approx(1.0, rel=0.1)
    assert (departure(law(GOOD), logged) or 0.0) > 10


def test_past_actions_are_those_of_the_log() -> None:
    """Before an episode they are 0, and its last row has no step."""
    last = BATCH.episodes[1:] != BATCH.episodes[:-1]
    before = np.where(np.append(True, last), 0.0, np.append(0.0, BATCH.actions[:-1, 0]))
    rows = ~np.append(last, True)
    assert rows.sum() == 400
    expected = np.square(BATCH.actions[:, 0] - before)[rows].mean() / BATCH.actions.var()
    assert departure(law("u0[t-1]"), LoggedActions(TASK, BATCH)) == pytest.approx(expected)


def test_what_a_controller_adds_up_is_added_up_along_the_log() -> None:
    def summing(ki: float) -> Controller:
        return PID.model_validate(
            {"kind": "pid", "outputs": {"u0": {"loops": [{"input": "x0", "kp": 0, "ki": ki, "window": 5}]}}}
        )

    sums = np.zeros(len(BATCH.states))
    for episode in range(int(BATCH.episodes.max()) + 1):
        rows = np.flatnonzero(BATCH.episodes == episode)
        for place, row in enumerate(rows):
            sums[row] = -BATCH.states[rows[max(0, place - 4) : place + 1], 0].sum()
    batch = replace(BATCH, actions=np.clip(0.2 * sums, -1, 1)[:, None])
    assert departure(summing(0.2), LoggedActions(TASK, batch)) == pytest.approx(0.0, abs=1e-6)
    assert (departure(summing(0.0), LoggedActions(TASK, batch)) or 0.0) > 0.5


def test_the_dial_turns_from_the_penalty_to_the_log() -> None:
    alone = penalties(0.0, LOG, GOOD)
    assert alone[1] < alone[0]
    assert penalties(0.0, GOOD)[0] == problem(0.0).penalties(
        encode([law(GOOD)], problem(0.0).task, history=1, dtype=np.float32), starts=64
    )
    near = penalties(1.0, LOG, GOOD)
    assert near[0] < near[1]
    half, staying = penalties(0.5, GOOD)[0], problem(0.5).staying
    assert staying is not None
    far = departure(law(GOOD), staying.logged)
    assert far is not None
    assert half == pytest.approx(0.5 * alone[1] + 0.5 * staying.scale * far, rel=1e-4)


def test_so_does_it_where_penalties_come_from_the_log_alone() -> None:
    value: Any = SimpleNamespace(cost=1, penalties=lambda _, starts: np.full((1, len(starts)), 7.0))
    asked = Problem(
        make_task(2),
        BATCH,
        MODEL,
        budget=10**9,
        rng=np.random.default_rng(0),
        starts=64,
        value=value,
        stay=0.5,
    )
    policies = encode([law(GOOD)], asked.task, history=asked.history, dtype=np.float32)
    assert asked.staying is not None
    far = departure(law(GOOD), asked.staying.logged)
    assert far is not None
    wanted = 0.5 * 7.0 + 0.5 * asked.staying.scale * far
    assert asked.penalties(policies, starts=64)[0] == pytest.approx(wanted, rel=1e-4)


def test_the_front_is_chosen_by_the_blend_and_promises_the_penalty() -> None:
    task = make_task(2)
    staying = problem(1.0).staying
    result = judge(
        "gprl",
        [Candidate(law(LOG), 0.0), Candidate(law(GOOD), 0.0)],
        task,
        BATCH,
        MODEL,
        steps=0,
        rng=np.random.default_rng(0),
        staying=staying,
    )
    assert [point.controller.summary for point in result.points] == [law(LOG).summary]
    (point,) = result.points
    members = MODEL.judge_members
    assert point.model.penalty == evaluate(law(LOG), task, surrogate=MODEL, members=members).penalty
    assert point.judged.penalty != pytest.approx(point.model.penalty)


def test_learning_stays_as_near_as_it_is_asked_to() -> None:
    task, logged = make_task(2), LoggedActions(make_task(2), BATCH)
    method = GPRL(gp=GP(population=20))
    found = [
        learn(
            task,
            BATCH,
            method,
            rng=np.random.default_rng(0),
            budget=300_000,
            surrogate=MODEL,
            force=True,
            robust=False,
            stay=stay,
        ).best
        for stay in (0.0, 0.5, 1.0)
    ]
    far = [departure(one, logged) or 0.0 for one in found]
    assert far[0] > far[1] > far[2]
    assert far[2] < 0.2
    with pytest.raises(ClearloopError, match="stay 2: expected a number from 0 to 1"):
        learn(task, BATCH, method, rng=np.random.default_rng(0), surrogate=MODEL, stay=2.0)
