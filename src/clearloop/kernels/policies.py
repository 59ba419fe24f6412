"""What each kind of controller does with a tile of lanes.

A tile's lanes belong to one or more controllers of a population: lanes [lo, hi) to number p. Kinds that
compute through scratch rows do so on whole vectors around them, so that a lane's bits do not depend on its
place.
"""

from typing import Any

from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import kernel
from clearloop.kernels.interpreter import run
from clearloop.kernels.layout import FUZZY, LANES, LINEAR, NETWORK, PID, PROGRAM
from clearloop.kernels.network import forward

VECTOR = 16  # lanes; a multiple of every vector length in use


@kernel
def act(
    policies: Any, p: int, begin: int, step: int, n_features: int, rows: Any, at: Any, lo: int, hi: int
) -> None:
    """The action of controller p for its lanes, within the limits, in the rows from at.chosen on.

    `begin`: the number of the tile's first lane in its member.
    """
    kind = policies.kind
    n_actions = policies.limits.shape[0]
    if kind == LINEAR:
        _linear(policies.numbers, p, n_features, n_actions, rows, at, lo, hi)
    elif kind == PROGRAM:
        first, last = lo // VECTOR * VECTOR, (hi + VECTOR - 1) // VECTOR * VECTOR
        for a in range(n_actions):
            start, stop = policies.spans[p, a], policies.spans[p, a + 1]
            run(policies.code, policies.operand, start, stop, rows, at.features, at.stack, first, last)
            for i in range(lo, hi):
                rows[at.chosen + a, i] = rows[at.stack, i]
    elif kind == FUZZY:
        number = 0
        for a in range(n_actions):
            rules = policies.sizes[a]
            _fuzzy(policies.numbers, p, number, rules, n_features, rows, at, at.chosen + a, lo, hi)
            number += 2 + rules * (1 + 2 * n_features)
    elif kind == PID:
        _pid(policies.numbers, p, policies.sizes, step, n_actions, rows, at, lo, hi)
    elif kind == NETWORK:
        _network(policies.numbers, p, policies.sizes, n_actions, rows, at, lo, hi)
    else:
        _sequence(policies.numbers, begin, step, n_actions, rows, at, lo, hi)
    for a in range(n_actions):
        low, high = policies.limits[a, 0], policies.limits[a, 1]
        for i in range(lo, hi):
            rows[at.chosen + a, i] = min(max(rows[at.chosen + a, i], low), high)


@kernel
def _linear(numbers: Any, p: int, n_features: int, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """numbers[p]: for each action a bias, then a gain for each feature."""
    for a in range(n_actions):
        first = a * (1 + n_features)
        for i in range(lo, hi):
            rows[at.chosen + a, i] = numbers[p, first]
        for f in range(n_features):
            gain = numbers[p, first + 1 + f]
            if gain != 0:
                for i in range(lo, hi):
                    rows[at.chosen + a, i] += gain * rows[at.features + f, i]


@kernel
def _fuzzy(
    numbers: Any, p: int, first: int, rules: int, n_features: int, rows: Any, at: Any, output: int, lo: int, hi: int
) -> None:
    """Eqs. (14)–(16) of the paper, for one action.

    numbers[p, first:]: scale and alpha, then for each rule its output and, for each feature, centre and
    −1/(2 width²), which is 0 where the rule does not look at the feature.
    """
    begin, end = lo // VECTOR * VECTOR, (hi + VECTOR - 1) // VECTOR * VECTOR
    highest, weights, total = at.stack, at.stack + 1, at.stack + 2
    per_rule = 1 + 2 * n_features
    # Σ mᵢ oᵢ / Σ mᵢ with every exponent less the largest: exact even when all mᵢ underflow.
    for r in range(rules):
        membership = at.stack + 3 + r
        rows[membership, begin:end] = 0
        for f in range(n_features):
            centre = numbers[p, first + 3 + r * per_rule + 2 * f]
            factor = numbers[p, first + 4 + r * per_rule + 2 * f]
            if factor != 0:
                for i in range(begin, end):
                    distance = rows[at.features + f, i] - centre
                    rows[membership, i] += factor * (distance * distance)
        for i in range(begin, end):
            rows[highest, i] = rows[membership, i] if r == 0 else max(rows[highest, i], rows[membership, i])
    rows[weights : total + 1, begin:end] = 0
    for r in range(rules):
        membership, then = at.stack + 3 + r, numbers[p, first + 2 + r * per_rule]
        for i in range(begin, end):
            m = arithmetic.exp(rows[membership, i] - rows[highest, i])
            rows[weights, i] += m
            rows[total, i] += m * then
    scale, alpha = numbers[p, first], numbers[p, first + 1]
    for i in range(lo, hi):
        rows[output, i] = scale * arithmetic.tanh(alpha * (rows[total, i] / rows[weights, i]))


@kernel
def _pid(numbers: Any, p: int, sizes: Any, step: int, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Sec. 3.2 of the paper, in steps. sizes: for each loop its action and its feature.

    numbers[p]: for each loop scale · weight, kp, ki, kd and window.
    """
    rows[at.chosen : at.chosen + n_actions, lo:hi] = 0
    for k in range(sizes.size // 2):
        output, x = at.chosen + sizes[2 * k], at.features + sizes[2 * k + 1]
        weight, kp, ki, kd = numbers[p, 5 * k], numbers[p, 5 * k + 1], numbers[p, 5 * k + 2], numbers[p, 5 * k + 3]
        total = at.loops + k * (2 + at.ring)
        last, oldest = total + 1, total + 2 + step % int(numbers[p, 5 * k + 4])
        if step == 0:
            rows[total : total + 2 + at.ring, lo:hi] = 0
            for i in range(lo, hi):
                rows[last, i] = -rows[x, i]
        for i in range(lo, hi):
            error = -rows[x, i]  # setpoint − value
            rows[total, i] += error - rows[oldest, i]
            rows[output, i] += weight * (kp * error + ki * rows[total, i] + kd * (error - rows[last, i]))
            rows[oldest, i] = error
            rows[last, i] = error


@kernel
def _network(numbers: Any, p: int, sizes: Any, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """sizes: number of layers L, L + 1 sizes, L activations, the features that enter.

    numbers[p]: the network (`network.py`), then a scale for each action.
    """
    layers = sizes[0]
    shape, activations = sizes[1 : layers + 2], sizes[layers + 2 : 2 * layers + 2]
    for k in range(shape[0]):
        feature = at.features + sizes[2 * layers + 2 + k]
        for i in range(LANES):
            rows[at.stack + k, i] = rows[feature, i]
    forward(numbers[p], 0, shape, activations, rows, at.stack, at.scores, at.hidden, at.widest)
    for a in range(n_actions):
        scale = numbers[p, numbers.shape[1] - n_actions + a]
        for i in range(lo, hi):
            rows[at.chosen + a, i] = scale * rows[at.scores + a, i]


@kernel
def _sequence(numbers: Any, begin: int, step: int, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Actions that stand fixed. numbers: for each lane of a member its A actions, step after step."""
    for i in range(lo, hi):
        lane = min(begin + i, numbers.shape[0] - 1)
        for a in range(n_actions):
            rows[at.chosen + a, i] = numbers[lane, step * n_actions + a]
