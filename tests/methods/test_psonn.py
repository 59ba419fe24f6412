"""PSONN: vectors, populations and files are the same networks; no biases on symmetric tasks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.arrays import Floats
from clearloop.controllers import encode
from clearloop.errors import ClearloopError
from clearloop.methods import Problem
from clearloop.methods.psonn import PSONN, NetworkForm
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

U, V = np.array([[1.0, 0.1], [-0.2, 0.9]]), np.array([[0.0, 0.05], [0.1, 0.0]])
TASKS = {
    "plain": make_task(2, 2),
    "symmetric": make_task(2, 2, symmetric=True),
    "one-sided": make_task(2, 2, actions={"u0": {"limits": [0.0, 4.0]}, "u1": {"limits": [-3.0, 1.0]}}),
}
PROBLEMS: dict[str, Problem] = {
    name: make_problem(task, make_log(task, U, V), make_model(task, U, V), starts=16)
    for name, task in TASKS.items()
}
TOPOLOGIES: list[tuple[int, ...]] = [(), (3,), (4, 3)]


def drawn(form: NetworkForm, count: int, seed: int = 0) -> Floats:
    low, high = form.bounds.T
    return np.random.default_rng(seed).uniform(low, high, (count, len(low)))


@pytest.mark.parametrize("hidden", TOPOLOGIES)
@pytest.mark.parametrize("name", TASKS)
def test_a_population_holds_the_numbers_of_the_files(name: str, hidden: tuple[int, ...]) -> None:
    problem = PROBLEMS[name]
    form = NetworkForm(problem, hidden)
    vectors = drawn(form, 5)
    population = form.encode(vectors)
    files = [form.controller(vector) for vector in vectors]
    read = encode(files, problem.task, history=problem.history, dtype=np.float32)
    assert np.array_equal(population.numbers, read.numbers)
    assert np.array_equal(population.sizes, read.sizes)
    assert np.array_equal(population.limits, read.limits)
    assert population.kind == read.kind
    assert problem.penalties(population, starts=16) == pytest.approx(problem.penalties(read, starts=16))


@pytest.mark.parametrize("hidden", TOPOLOGIES)
def test_topology_and_units(hidden: tuple[int, ...]) -> None:
    problem = PROBLEMS["plain"]
    controller = NetworkForm(problem, hidden).controller(drawn(NetworkForm(problem, hidden), 1)[0])
    assert controller.widths == [2, *hidden, 2]
    assert controller.inputs == ("x0", "x1")
    assert {layer.activation for layer in controller.layers} == {"tanh"}
    # A weight of the first layer answers to a feature in its typical size.
    first = np.array(controller.layers[0].weights) * problem.scales[:2]
    assert 1.0 < np.abs(first).max() <= 5.001


@settings(deadline=None)
@given(st.sampled_from(TOPOLOGIES), st.integers(0, 2**32), st.lists(st.floats(-3, 3), min_size=2, max_size=2))
def test_on_symmetric_tasks_networks_answer_mirrored_states_with_mirrored_actions(
    hidden: tuple[int, ...], seed: int, state: list[float]
) -> None:
    form = NetworkForm(PROBLEMS["symmetric"], hidden)
    controller = form.controller(drawn(form, 1, seed)[0])
    actions = [
        controller.act({"x0": sign * state[0], "x1": sign * state[1]}, controller.reset()) for sign in (1, -1)
    ]
    for name in ("u0", "u1"):
        assert actions[0][name] == pytest.approx(-actions[1][name], abs=1e-12)


def test_only_networks_of_other_tasks_have_biases() -> None:
    symmetric, plain = (NetworkForm(PROBLEMS[name], (3,)) for name in ("symmetric", "plain"))
    assert len(symmetric.bounds) == 2 * 3 + 3 * 2
    assert len(plain.bounds) == len(symmetric.bounds) + 3 + 2
    assert any(number for layer in plain.controller(drawn(plain, 1)[0]).layers for number in layer.bias)


def test_weights_in_files_have_four_digits() -> None:
    form = NetworkForm(PROBLEMS["plain"], (4,))
    for layer in form.controller(drawn(form, 1)[0]).layers:
        numbers = [*layer.bias, *(number for row in layer.weights for number in row)]
        assert all(number == float(f"{number:.4g}") for number in numbers)


def test_a_network_has_no_more_weights_than_a_descent_can_learn_the_shape_of() -> None:
    with pytest.raises(ClearloopError, match="a controller with 10,602 parameters is too large"):
        PSONN(hidden=(100, 100)).begin(PROBLEMS["plain"], rng=np.random.default_rng(0))
