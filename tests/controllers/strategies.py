"""Random controllers of every kind for the cart-pole: extreme numbers, odd names, fields left out."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from clearloop.expression import Variable, substitute, to_text
from tests.controllers.kinds import examples
from tests.expression.strategies import expressions

LARGEST = 1e12
NAMES = ("theta", "theta_dot", "rho", "rho_dot", "theta[t-3]", "rho[t-12]", "rho_dot [ t ]", "force[t-1]")
EXTREMES = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 0.1, 1 / 3, LARGEST, -LARGEST)


def numbers() -> SearchStrategy[float]:
    return st.sampled_from(EXTREMES) | st.floats(-LARGEST, LARGEST) | st.integers(-5, 5)


def lines() -> SearchStrategy[str]:
    characters = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
    return st.sampled_from(["θ̈ controller", "调节器", 'a"b', "$x$ 😀"]) | st.text(
        characters, min_size=1, max_size=200
    )


def some(names: tuple[str, ...] = NAMES) -> SearchStrategy[list[str]]:
    return st.lists(
        st.sampled_from(names), min_size=1, max_size=4, unique_by=lambda name: name.split("[")[0].strip()
    )


def formulas() -> SearchStrategy[str]:
    """Any that the language has, with names that the cart-pole has."""
    names = {Variable("x"): Variable("theta"), Variable("θ"): Variable("rho_dot")}
    plain = ["0", "theta", "-(3)", "rho.setpoint - rho.error[t-2]", "if(theta > rho, 1, force[t-1])"]
    trees = expressions("number", 2, ("add", "mul", "div", "neg", "max", "if", "lt", "pow"))
    return st.sampled_from(plain) | trees.map(lambda tree: to_text(substitute(tree, names)))


def memberships() -> SearchStrategy[dict[str, float]]:
    widths = st.sampled_from([1e-6, 1.0, LARGEST]) | st.floats(1e-6, LARGEST)
    return st.fixed_dictionaries({"center": numbers(), "width": widths})


@st.composite
def fuzzies(draw: st.DrawFn) -> dict[str, Any]:
    rules = [
        {"if": {name: draw(memberships()) for name in draw(some())}, "then": draw(numbers())}
        for _ in range(draw(st.integers(1, 3)))
    ]
    return {"outputs": {"force": {"scale": draw(numbers()), "alpha": draw(numbers()), "rules": rules}}}


@st.composite
def stacks(draw: st.DrawFn, widths: list[int]) -> list[dict[str, Any]]:
    """Layers of these widths, the input's first."""
    layers = []
    for before, after in pairwise(widths):
        row = st.lists(numbers(), min_size=before, max_size=before)
        layer = {
            "weights": [draw(row) for _ in range(after)],
            "bias": [draw(numbers()) for _ in range(after)],
        }
        activation = draw(st.sampled_from([None, "identity", "relu", "tanh", "sigmoid"]))
        layers.append({**layer, "activation": activation} if activation else layer)
    return layers


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    inputs = draw(some())
    layers = draw(stacks([len(inputs), *draw(st.lists(st.integers(1, 3), max_size=3)), 1]))
    return {"inputs": inputs, "layers": layers, "outputs": {"force": draw(optional(scale=numbers()))}}


@st.composite
def greedies(draw: st.DrawFn) -> dict[str, Any]:
    inputs = draw(some())
    levels = draw(st.lists(numbers(), min_size=1, max_size=4))
    layers = draw(stacks([len(inputs) + 1, *draw(st.lists(st.integers(1, 3), max_size=3)), 1]))
    return {"inputs": inputs, "layers": layers, "outputs": {"force": levels}}


def optional(**fields: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def pids() -> SearchStrategy[dict[str, Any]]:
    gains = {"weight": numbers(), "ki": numbers(), "kd": numbers()}
    options = {
        "integral": st.booleans(),
        "filter": st.floats(0, 100),
        "setpoint_weight": numbers(),
        "derivative_of": st.sampled_from(["error", "measurement"]),
    }
    points = {"at": [-1.0, 0.0, 2], "kp": [1.0, -2, 3], "ki": [0, 1, 2]}
    names = st.sampled_from(["theta", "theta_dot", "rho", "rho_dot"])
    kp = {"input": names, "kp": numbers()}
    loop = st.fixed_dictionaries(kp, optional=gains | {"window": st.integers(1, 60)})
    loop |= st.fixed_dictionaries(kp, optional=gains | options)
    loop |= st.fixed_dictionaries(
        {"input": names, "schedule": st.fixed_dictionaries({"by": names}).map(lambda by: by | points)},
        optional=options,
    )
    more = gains | options
    outer = st.fixed_dictionaries(
        kp | {"input": st.just("rho")}, optional=more | {"bias": numbers(), "limits": st.just([-0.5, 1])}
    )
    inner = st.fixed_dictionaries(kp | {"input": st.just("theta")}, optional=more)
    several = st.fixed_dictionaries({"loops": st.lists(loop, min_size=1, max_size=3)})
    cascade = st.fixed_dictionaries({"outer": outer, "inner": inner})
    rest = optional(
        scale=numbers(),
        bias=numbers(),
        rate=st.sampled_from([1e-9, 0.5, 1e12]),
        feedforward=st.dictionaries(st.sampled_from(["rho.setpoint", "theta_dot"]), numbers()),
    )
    some: SearchStrategy[Any] = several | several | cascade
    return st.builds(lambda one, other: {"outputs": {"force": {**one, **other}}}, some, rest)


def linears() -> SearchStrategy[dict[str, Any]]:
    gains = st.dictionaries(st.sampled_from(NAMES), numbers(), min_size=1)
    return gains.map(lambda row: {"gains": {"force": row}})


def equations() -> SearchStrategy[dict[str, Any]]:
    return formulas().map(lambda text: {"outputs": {"force": text}})


BODIES = {
    "equation": equations,
    "linear": linears,
    "pid": pids,
    "fuzzy": fuzzies,
    "network": networks,
    "greedy-q": greedies,
}


def bodies(kind: str) -> SearchStrategy[dict[str, Any]]:
    """What is between observation and action; where nobody says how to draw it, that of the examples."""
    return BODIES[kind]() if kind in BODIES else st.sampled_from(examples(kind))


def tables(kind: str) -> SearchStrategy[dict[str, Any]]:
    """What a controller file of this kind holds."""
    fields = optional(
        name=lines(),
        task=lines(),
        setpoint=optional(rho=numbers()),
        limits=optional(force=st.sampled_from([[-10.0, 10.0], [-3, 2.5], [0, 1e300], [-1e-9, 1e-9]])),
        units=optional(theta=st.sampled_from(["°", "rad", ""]), force=st.just("N")),
        dt=st.floats(1e-9, 1e9),
    )
    return st.builds(lambda head, body: {"clearloop": 1, "kind": kind, **head, **body}, fields, bodies(kind))


def files(kind: str) -> SearchStrategy[str]:
    return tables(kind).map(json.dumps)


def states(largest: float = 1e300) -> SearchStrategy[dict[str, float]]:
    values = st.sampled_from([0.0, 1e-300, largest, -largest]) | st.floats(-3, 3)
    return st.fixed_dictionaries(dict.fromkeys(("theta", "theta_dot", "rho", "rho_dot"), values))
