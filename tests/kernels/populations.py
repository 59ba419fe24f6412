"""Random populations of every kind for two states, two actions and a history of two."""

from itertools import pairwise
from typing import Any

import numpy as np

from clearloop.expression import parse
from clearloop.kernels.engine import System
from clearloop.kernels.layout import (
    CLASSES,
    FUZZY,
    GREEDY,
    LINEAR,
    NETWORK,
    NETWORKS,
    PID,
    RELU,
    SEQUENCE,
    TANH,
    Dynamics,
    LoweredReward,
    Networks,
    Policies,
)
from tests.kernels.rig import Rig, policies_of

STATES, ACTIONS, HISTORY, STEPS = ("x", "v"), ("u", "w"), 2, 8
FEATURES = HISTORY * 4 + 2
READABLE = [0, 1, 4, 5, 6, 7, 8, 9]  # rows 2 and 3 are the actions about to be chosen
LIMITS = [[-1.0, 1.0], [-0.5, 2.0]]
KINDS = ("linear", "program", "fuzzy", "pid", "network", "greedy", "sequence")


def make_rig(dtype: Any) -> Rig:
    return Rig(STATES, ACTIONS, HISTORY, dtype)


def make_population(kind: str, population: int, starts: int, dtype: Any) -> Policies:
    rng = np.random.default_rng(population)
    if kind == "program":
        return _programs(population, rng, dtype)
    if kind == "linear":
        numbers, sizes, code = _linear(population, rng), [], LINEAR
    elif kind == "fuzzy":
        numbers, sizes, code = _fuzzy(population, rng), [2, 3], FUZZY
    elif kind == "pid":  # two loops over windows and one that integrates; an action that moves slowly
        numbers, sizes, code = _pids(population, rng), _PID_SIZES, PID
    elif kind == "network":  # two layers, their sizes, their activations, the inputs
        sizes, code = [2, 3, 7, 2, TANH, RELU, 0, 1, 6], NETWORK
        numbers = rng.normal(0, 1, (population, 4 * 7 + 8 * 2 + 2))
    elif kind == "greedy":  # the last two of five inputs are the actions; seven of them to choose from
        sizes, code = [2, 5, 7, 1, TANH, RELU, 0, 1, 6], GREEDY
        numbers = rng.normal(0, 1, (population, 6 * 7 + 8 * 1 + 7 * 2))
    else:
        numbers, sizes, code = rng.normal(0, 1, (population * starts, STEPS * 2)), [], SEQUENCE
    return policies_of(code, numbers, LIMITS, dtype, sizes)


def alone(policies: Policies, p: int, starts: int) -> Policies:
    """Controller p as a population of its own."""
    rows = slice(p * starts, (p + 1) * starts) if policies.kind == SEQUENCE else slice(p, p + 1)
    return policies._replace(numbers=policies.numbers[rows], spans=policies.spans[p : p + 1])


def make_system(dtype: Any, members: int = 2) -> System:
    """Networks 8-9-1 for the changes of the states and 2-5-3 for the class of the reward."""
    rng = np.random.default_rng(0)
    networks = [
        _networks(rng, 2 * members, (8, 9, 1), 0.3, dtype),
        _networks(rng, members, (2, 5, 3), 1, dtype),
    ]
    none = make_rig(dtype).dynamics(["0", "0"], False, {})
    dynamics: Dynamics = none._replace(kind=NETWORKS, networks=networks[0])
    reward: LoweredReward = (
        make_rig(dtype)
        .reward("0")
        ._replace(
            kind=CLASSES,
            networks=networks[1],
            levels=np.array([0.0, -0.25, -1.0], dtype),
            failing=np.array([False, False, True]),
        )
    )
    return System(dynamics, reward, members)


def _networks(
    rng: np.random.Generator, count: int, sizes: tuple[int, ...], scale: float, dtype: Any
) -> Networks:
    size = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    numbers = rng.normal(0, scale, count * size).astype(dtype)
    return Networks(numbers, count, np.array(sizes), np.array([RELU, 0]))


def _linear(population: int, rng: np.random.Generator) -> Any:
    numbers = rng.normal(0, 1, (population, 2, 1 + FEATURES))
    numbers[:, :, [3, 4]] = 0
    return numbers.reshape(population, -1)


def _fuzzy(population: int, rng: np.random.Generator) -> Any:
    """Two rules for the first action, three for the second; a factor is not positive."""
    outputs = []
    for rules in (2, 3):
        head = rng.normal(0, 1, (population, 2))
        features = rng.normal(0, 1, (population, rules, FEATURES, 2))
        features[..., 1] = -np.abs(features[..., 1])
        features[:, :, [2, 3], 1] = 0
        then = rng.normal(0, 1, (population, rules, 1))
        body = np.concatenate([then, features.reshape(population, rules, -1)], axis=2)
        outputs += [head, body.reshape(population, -1)]
    return np.concatenate(outputs, axis=1)


_PID_SIZES = [
    *(3, 0, 0, 0, 8, -1, -1, 0, 0, 1, 0, 1, 9, -1, -1, 0, 0, 0, 0, 5, 8, 1, 9, 1, 1),
    *(-1, 1, 4, -1, 7, 0),
]  # fmt: skip


def _pids(population: int, rng: np.random.Generator) -> Any:
    """Numbers of three loops, of a segment of gains, and of two actions, the first with a feed-forward."""
    loops = rng.normal(0, 1, (population, 3, 12))
    loops[..., 4] = rng.integers(1, 6, (population, 3))
    loops[..., 5] = rng.uniform(0, 0.9, (population, 3))
    loops[..., 10:] = [-1e12, 1e12]
    segment = [[-1.0, 1.0, 0.3, 0.1, 0.2]] * population
    actions = [
        rng.normal(0, 1, (population, 1)),
        np.zeros((population, 1)),
        rng.normal(0, 1, (population, 2)),
    ]
    speed = rng.uniform(0.05, 1, (population, 1))
    return np.hstack([loops.reshape(population, -1), segment, *actions, speed])


def _programs(population: int, rng: np.random.Generator, dtype: Any) -> Policies:
    texts = (
        "{0}*x - tanh({1}*v[t-1])",
        "if(x < {0}, sin(v), {1}/x)",
        "max(u[t-1], {0}*v) + exp(-abs(x))",
        "{0}",
        "log(abs(x*{1})) * cos({0}*w[t-1])",
    )
    drawn = [
        [parse(rng.choice(texts).format(*rng.normal(0, 1, 2))) for _ in ACTIONS] for _ in range(population)
    ]
    policies = make_rig(dtype).programs(drawn)
    return policies._replace(limits=np.array(LIMITS, dtype))
