"""FPSRL: vectors, populations and files are the same rules; twins on symmetric tasks; a front over counts."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.arrays import Floats
from clearloop.controllers import encode, to_json
from clearloop.data import Batch
from clearloop.methods import Problem, learn
from clearloop.methods.evolving import Sample
from clearloop.methods.fpsrl import FPSRL, RuleForm
from clearloop.methods.swarm import Stages, SwarmStage
from clearloop.search.cma import CMA
from clearloop.search.pso import PSO
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

U, V = np.array([[1.0, 0.1], [-0.2, 0.9]]), np.array([[0.0, 0.05], [0.1, 0.0]])
TASKS = {
    "plain": make_task(2, 2),
    "symmetric": make_task(2, 2, symmetric=True),
    "setpoint": make_task(2, 2, states={"x0": {"setpoint": 0.3}, "x1": {}}),
    "one-sided": make_task(2, 2, actions={"u0": {"limits": [0.0, 4.0]}, "u1": {"limits": [-3.0, 1.0]}}),
}
PROBLEMS: dict[str, Problem] = {
    name: make_problem(task, make_log(task, U, V), make_model(task, U, V), starts=16)
    for name, task in TASKS.items()
}
SMALL = Stages(
    swarm=PSO(particles=12),
    explore=Sample(8, 1),
    cma=CMA(candidates=8),
    descend=(SwarmStage(0.6, 3, Sample(8, 1)), SwarmStage(1.0, 1, Sample(16, None))),
)


def drawn(form: RuleForm, count: int, seed: int = 0) -> Floats:
    low, high = form.bounds.T
    return np.random.default_rng(seed).uniform(low, high, (count, len(low)))


@pytest.mark.parametrize("rules", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", TASKS)
def test_a_population_holds_the_numbers_of_the_files(name: str, rules: int) -> None:
    problem = PROBLEMS[name]
    form = RuleForm(problem, rules)
    vectors = drawn(form, 5)
    population = form.encode(vectors)
    read = encode(
        [form.controller(v) for v in vectors], problem.task, history=problem.history, dtype=np.float32
    )
    assert np.array_equal(population.numbers, read.numbers)
    assert np.array_equal(population.sizes, read.sizes)
    assert np.array_equal(population.limits, read.limits)
    assert population.kind == read.kind
    assert problem.penalties(population, starts=16) == pytest.approx(problem.penalties(read, starts=16))


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(0, 2**32), st.lists(st.floats(-3, 3), min_size=2, max_size=2))
def test_on_symmetric_tasks_rules_answer_mirrored_states_with_mirrored_actions(
    rules: int, seed: int, state: list[float]
) -> None:
    form = RuleForm(PROBLEMS["symmetric"], rules)
    controller = form.controller(drawn(form, 1, seed)[0])
    assert all(len(base.rules) == rules for base in controller.outputs.values())
    actions = [
        controller.act({"x0": sign * state[0], "x1": sign * state[1]}, controller.reset()) for sign in (1, -1)
    ]
    for name in ("u0", "u1"):
        assert actions[0][name] == pytest.approx(-actions[1][name], abs=1e-12)


def test_twins_share_their_parameters() -> None:
    """Centres and widths of two features and an output for each pair, widths for the middle; and alpha."""
    counts = {rules: len(RuleForm(PROBLEMS["symmetric"], rules).bounds) for rules in (1, 2, 3, 4)}
    assert counts == {1: 2 * 3, 2: 2 * 6, 3: 2 * 8, 4: 2 * 11}  # for two actions
    assert len(RuleForm(PROBLEMS["plain"], 3).bounds) == 2 * (3 * 5 + 1)


def test_numbers_in_files_have_four_digits() -> None:
    form = RuleForm(PROBLEMS["plain"], 3)
    for vector in drawn(form, 5):
        file = json.loads(to_json(form.controller(vector)))
        for base in file["outputs"].values():
            terms = [term for rule in base["rules"] for term in rule["if"].values()]
            numbers = [base["alpha"], *(rule["then"] for rule in base["rules"])]
            numbers += [number for term in terms for number in (term["center"], term["width"])]
            assert all(number == float(f"{number:.4g}") for number in numbers)


def test_units_do_not_matter() -> None:
    """With states in thousandths the same vectors are the same controllers, but for rounding."""
    plain, log = PROBLEMS["symmetric"], PROBLEMS["symmetric"].batch
    small = Batch(log.columns, log.states * 1000, log.actions, log.episodes, log.terminal)
    other = make_problem(plain.task, small, make_model(plain.task, U, V * 1000, reach=1e5), starts=16)
    other.scenarios = replace(plain.scenarios, starts=plain.scenarios.starts * 1000)
    vectors = drawn(RuleForm(plain, 4), 8)
    costs, others = (each.penalties(RuleForm(each, 4).encode(vectors), starts=16) for each in (plain, other))
    assert others == pytest.approx(costs * 1000, rel=1e-2)


def test_gives_a_front_over_counts_of_rules() -> None:
    task, inputs = make_task(2, symmetric=True), V[:, 1:]
    result = learn(
        task, make_log(task, U, inputs), FPSRL(rules=(3, 1, 2), stages=SMALL), rng=np.random.default_rng(0),
        budget=4_000_000, surrogate=make_model(task, U, inputs),
    )  # fmt: skip
    counts = [len(point.controller.outputs["u0"].rules) for point in result.points]  # type: ignore[attr-defined]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert result.points[-1].model.penalty < 0.9 * result.points[0].model.penalty  # one rule does nothing


def test_every_count_has_its_fair_share() -> None:
    problem = PROBLEMS["plain"]
    problem.spent = 0
    search = FPSRL(rules=(2, 3), stages=SMALL).begin(problem, rng=np.random.default_rng(0))
    for _ in range(60):
        search.advance()
    first, second = (hunt.spent / len(hunt.form.bounds) for hunt in search.hunts)
    assert sum(hunt.spent for hunt in search.hunts) == problem.spent
    assert first == pytest.approx(second, rel=0.1)


def test_what_is_found_is_what_was_evaluated() -> None:
    problem = make_problem(TASKS["plain"], PROBLEMS["plain"].batch, PROBLEMS["plain"].surrogate, starts=16)
    problem.budget = 3_000_000
    search = FPSRL(rules=(2,), stages=SMALL).begin(problem, rng=np.random.default_rng(1))
    assert search.best == np.inf
    while problem.share < 1:
        search.advance()
    assert search.hunts[0].stage == 2
    candidates = search.candidates()
    assert len(candidates) == 1
    for candidate in candidates:
        again = encode([candidate.controller], problem.task, history=problem.history, dtype=np.float32)
        assert problem.penalties(again, starts=16)[0] == pytest.approx(candidate.penalty, rel=1e-6)
    assert search.best == candidates[0].penalty
