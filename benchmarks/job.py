"""The job that everybody runs: linear policies on the paper's networks, in single precision.

Four networks 5-10-10-10-1 predict the changes of the states, one network 4-10-10-10-3 the class of the
reward, as in sec. 4.2 of the paper; nothing stops at failure. Weights are random: speed does not depend on
what was learned.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clearloop.expression import OPERATIONS
from clearloop.expression.nodes import NUMBER, VARIABLE
from clearloop.kernels.engine import System
from clearloop.kernels.layout import (
    ACTIVATIONS,
    CLASSES,
    LINEAR,
    MOVED,
    NETWORKS,
    PROGRAM,
    Dynamics,
    Job,
    LoweredReward,
    Networks,
    Policies,
)
from clearloop.programs import unbounded

Floats = NDArray[np.float32]
Layers = list[tuple[Floats, Floats]]
"""weights [outputs, inputs] and biases of each layer"""

DYNAMICS, REWARD = (5, 10, 10, 10, 1), (4, 10, 10, 10, 3)
STATES, LIMIT, DISCOUNT = 4, 10.0, 0.97
LEVELS = np.array([0.0, -0.1, -1.0], np.float32)
MULTIPLY_ADDS = STATES * (5 * 10 + 100 + 100 + 10) + (4 * 10 + 100 + 100 + 30)
"""of the networks in one step"""


@dataclass(frozen=True)
class Workload:
    gains: Floats
    """[policies, S]"""
    starts: Floats
    """[starts, S]"""
    horizon: int
    dynamics: list[list[Layers]]
    """[members][S]"""
    reward: list[Layers]
    """[members]"""

    @property
    def steps(self) -> int:
        return len(self.gains) * len(self.starts) * self.horizon * len(self.dynamics)


def make_workload(policies: int = 1000, starts: int = 100, horizon: int = 100, members: int = 1) -> Workload:
    rng = np.random.default_rng(0)
    return Workload(
        gains=rng.normal(0, 10, (policies, STATES)).astype(np.float32),
        starts=rng.uniform(-0.5, 0.5, (starts, STATES)).astype(np.float32),
        horizon=horizon,
        dynamics=[[_layers(DYNAMICS, 0.02, rng) for _ in range(STATES)] for _ in range(members)],
        reward=[_layers(REWARD, 1.0, rng) for _ in range(members)],
    )


def _layers(sizes: tuple[int, ...], last: float, rng: np.random.Generator) -> Layers:
    """He's initialisation, with outputs of the size `last`."""
    layers: Layers = []
    for n_in, n_out in pairwise(sizes):
        draws = rng.normal(0, np.sqrt(2 / n_in), (n_out, n_in)), rng.normal(0, 0.1, n_out)
        layers.append((draws[0].astype(np.float32), draws[1].astype(np.float32)))
    weights, biases = layers[-1]
    layers[-1] = ((weights * last).astype(np.float32), (biases * last).astype(np.float32))
    return layers


def engine_job(workload: Workload) -> Job:
    return Job(workload.starts, np.zeros((workload.horizon, STATES), np.float32), DISCOUNT, 1)


def engine_system(workload: Workload) -> System:
    from clearloop.kernels.network import flatten

    def lower(networks: list[Layers], sizes: tuple[int, ...]) -> Networks:
        numbers = [flatten([w for w, _ in layers], [b for _, b in layers]) for layers in networks]
        kinds = [ACTIVATIONS["relu"]] * (len(sizes) - 2) + [ACTIVATIONS["identity"]]
        flat = np.concatenate(numbers).astype(np.float32)
        return Networks(flat, len(networks), np.array(sizes), np.array(kinds))

    none = {"code": np.zeros(0, np.int32), "operand": np.zeros(0, np.float32)}
    dynamics = Dynamics(
        kind=NETWORKS,
        ways=np.full(STATES, MOVED),
        order=np.zeros(0, np.int64),
        networks=lower([layers for member in workload.dynamics for layers in member], DYNAMICS),
        **none,
        spans=np.zeros(STATES + 1, np.int64),
        substeps=1,
        dt=0.025,
        bounds=unbounded(STATES),
        absorbing=False,
        on_failure=np.full(STATES, np.nan, np.float32),
    )
    reward = LoweredReward(
        kind=CLASSES,
        **none,
        spans=np.zeros(3, np.int64),
        networks=lower(workload.reward, REWARD),
        levels=LEVELS,
        failing=np.array([False, False, True]),
    )
    return System(dynamics, reward, len(workload.dynamics))


def linear_policies(workload: Workload) -> Policies:
    numbers = np.zeros((len(workload.gains), 2 + 2 * STATES), np.float32)
    numbers[:, 1 : 1 + STATES] = workload.gains
    count = len(numbers)
    return Policies(
        kind=LINEAR,
        numbers=numbers,
        sizes=np.zeros(0, np.int64),
        code=np.zeros(0, np.int32),
        operand=np.zeros(0, np.float32),
        spans=np.zeros((count, 1), np.int64),
        limits=np.array([[-LIMIT, LIMIT]], np.float32),
        counts=np.zeros(1, np.float32),
    )


def program_policies(count: int) -> Policies:
    """Random programs of 15 to 31 nodes over + − × ÷ min max abs tanh if."""
    rng = np.random.default_rng(1)
    programs: list[list[tuple[int, float]]] = []
    while len(programs) < count:
        program = _tree(rng, 5)
        if 15 <= len(program) <= 31:
            programs.append(program)
    ends = np.cumsum([0, *map(len, programs)])
    nodes = [node for program in programs for node in program]
    return Policies(
        kind=PROGRAM,
        numbers=np.zeros((count, 0), np.float32),
        sizes=np.zeros(0, np.int64),
        code=np.array([code for code, _ in nodes], np.int32),
        operand=np.array([operand for _, operand in nodes], np.float32),
        spans=np.stack([ends[:-1], ends[1:]], axis=1),
        limits=np.array([[-LIMIT, LIMIT]], np.float32),
        counts=np.zeros(1, np.float32),
    )


def _tree(rng: np.random.Generator, depth: int) -> list[tuple[int, float]]:
    if depth == 0 or rng.random() < 0.1:
        return (
            [(VARIABLE, float(rng.integers(STATES)))] if rng.random() < 0.6 else [(NUMBER, rng.normal(0, 5))]
        )
    names = ("add", "sub", "mul", "div", "min", "max", "abs", "tanh", "if")
    operation = OPERATIONS[names[int(rng.integers(len(names)))]]
    if operation.name == "if":
        condition = [*_tree(rng, 0), *_tree(rng, 0), (OPERATIONS["lt"].opcode, 0.0)]
        return [*condition, *_tree(rng, depth - 1), *_tree(rng, depth - 1), (operation.opcode, 0.0)]
    arguments = [node for _ in range(operation.arity) for node in _tree(rng, depth - 1)]
    return [*arguments, (operation.opcode, 0.0)]
