"""Searches begin with laws that follow from the batch."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.methods import Problem
from clearloop.methods.gprl import GPRL, Equations
from clearloop.methods.lqr import LQR, design
from clearloop.methods.sowing import MOST_TERMS, LinearLaw, sow_laws
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

U, V = np.array([[1.0, 0.1], [-0.2, 0.9]]), np.array([[0.0], [0.1]])
TASK = make_task(2, 1, symmetric=True)


def sown(problem: Problem) -> list[tuple[LinearLaw, ...]]:
    return sow_laws(problem, problem.readable)


def test_the_first_law_is_lqr() -> None:
    batch = make_log(TASK, U, V)
    (law,), *others = sown(make_problem(TASK, batch, make_model(TASK, U, V)))
    assert not others  # the actions of the log are random
    gains = design(TASK, batch, LQR()).controller().gains["u0"]  # type: ignore[attr-defined]
    assert dict(law.terms) == pytest.approx({0: gains["x0"], 1: gains["x1"]}, rel=1e-3)
    assert law.constant == 0


def test_the_law_of_the_log_is_found_too() -> None:
    batch = make_log(TASK, U, V)
    actions = batch.states @ np.array([[0.5], [-0.8]])
    batch = replace(batch, actions=actions)
    laws = sown(make_problem(TASK, batch, make_model(TASK, U, V)))
    assert dict(laws[-1][0].terms) == pytest.approx({0: 0.5, 1: -0.8})


def test_a_law_of_many_variables_is_shortened() -> None:
    task = make_task(8, 1)
    u, v = np.eye(8) + 0.1 * np.eye(8, k=1), np.eye(8)[:, -1:]
    laws = sown(make_problem(task, make_log(task, u, v), make_model(task, u, v)))
    assert laws
    assert all(1 <= len(one.terms) <= MOST_TERMS for law in laws for one in law)


def test_equations_begin_with_subsets_of_the_terms_under_tanh_and_clip() -> None:
    problem = make_problem(TASK, make_log(TASK, U, V), make_model(TASK, U, V))
    equations = Equations(problem, GPRL().functions, odd=True)
    sown = [equations.controller(equations.simplify(one)).summary for one in equations.sown()]
    sizes = 3  # of the gains
    assert sum("tanh" in law for law in sown) == sum("clip" in law for law in sown) == 3 * sizes
    assert len(set(sown)) == (1 + 2 + 6) * sizes  # whole, each term alone, and the bent ones
    assert all(equations.allows(one) for one in equations.sown())


def test_several_actions_are_varied_one_at_a_time() -> None:
    task, both = make_task(2, 2), np.array([[0.0, 0.05], [0.1, 0.0]])
    problem = make_problem(task, make_log(task, U, both), make_model(task, U, both))
    equations = Equations(problem, GPRL().functions)
    for one in equations.sown():
        first, second = (str(formula) for formula in equations.expressions(one))
        assert not ("Tanh" in first and "Tanh" in second)
        equations.controller(equations.simplify(one))


def test_a_batch_without_a_regulator_sows_nothing() -> None:
    still = np.zeros((2, 1))
    problem = make_problem(TASK, make_log(TASK, U * 1.2, still), make_model(TASK, U, V))
    assert sown(problem) == []


def test_a_law_with_larger_gains_acts_the_same_at_the_means() -> None:
    law = LinearLaw(((0, 2.0), (1, -1.0)), constant=3.0, centre=5.0)
    means = {0: 2.0, 1: 2.0}  # 2 * 2 - 2 + 3 is 5
    bold = law.scaled(4.0)
    assert bold.terms == ((0, 8.0), (1, -4.0))
    assert sum(gain * means[n] for n, gain in bold.terms) + bold.constant == law.centre
