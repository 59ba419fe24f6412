"""`act` computes the actions of every kind of controller for a tile of lanes.

The lanes of a tile belong to one or more controllers of a population: lanes [lo, hi) belong to number p. A
controller computes on whole vectors and writes only its own lanes.
"""

from typing import Any

import numpy as np

from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import inlined, part
from clearloop.kernels.interpreter import run_tile
from clearloop.kernels.layout import FUZZY, GREEDY, LINEAR, NETWORK, PID, PROGRAM
from clearloop.kernels.network import BLOCK, forward, length
from clearloop.kernels.vectors import VECTOR, fetch, floor, maximum, minimum, put, splat, store, where

_MOST_KEPT = 1e12  # the largest size of an integral, as of everything that formulas read


@inlined
def _gather(features: Any, rows: Any, at: Any, begin: int, end: int) -> None:
    """Copy the features that a network reads to the rows from at.stack on."""
    for k in range(features.size):
        for i in range(begin, end, VECTOR):
            store(rows, at.stack + k, i, fetch(rows, at.features + features[k], i))


@part
def network(numbers: Any, p: int, sizes: Any, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Run a network controller (sec. 3.5 of the paper).

    `sizes` holds the number of layers L, L + 1 sizes, L activations, and the features that the network reads.
    numbers[p] holds the network (`network.py`), then a scale for each action.
    """
    layers = sizes[0]
    shape, activations = sizes[1 : layers + 2], sizes[layers + 2 : 2 * layers + 2]
    begin, end = lo // BLOCK * BLOCK, (hi + BLOCK - 1) // BLOCK * BLOCK
    _gather(sizes[2 * layers + 2 :], rows, at, begin, end)
    forward(numbers[p], 0, shape, activations, rows, at.stack, at.scores, at.hidden, at.widest, begin, end)
    for a in range(n_actions):
        scale = numbers[p, numbers.shape[1] - n_actions + a]
        for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
            put(rows, at.action + a, i, scale * fetch(rows, at.scores + a, i), lo, hi)


@part
def greedy(numbers: Any, p: int, sizes: Any, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Take the listed action with the highest Q (sec. 3.3 of the paper), the first of equals.

    `sizes` is as for `network`; the inputs are the features, then the A actions. numbers[p] holds the
    network, then the listed actions, A numbers for each.
    """
    layers = sizes[0]
    shape, activations = sizes[1 : layers + 2], sizes[layers + 2 : 2 * layers + 2]
    begin, end = lo // BLOCK * BLOCK, (hi + BLOCK - 1) // BLOCK * BLOCK
    _gather(sizes[2 * layers + 2 :], rows, at, begin, end)
    first, chosen, highest = length(shape), at.stack + shape[0] - n_actions, at.stack + shape[0]
    for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
        store(rows, highest, i, -np.finfo(rows.dtype).max)
        for a in range(n_actions):
            put(rows, at.action + a, i, splat(rows, numbers[p, first + a]), lo, hi)
    for choice in range(first, numbers.shape[1], n_actions):
        for a in range(n_actions):
            for i in range(begin, end, VECTOR):
                store(rows, chosen + a, i, numbers[p, choice + a])
        forward(
            numbers[p], 0, shape, activations, rows, at.stack, at.scores, at.hidden, at.widest, begin, end
        )
        for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
            score, best = fetch(rows, at.scores, i), fetch(rows, highest, i)
            store(rows, highest, i, maximum(score, best))
            for a in range(n_actions):
                action = where(score > best, fetch(rows, chosen + a, i), fetch(rows, at.action + a, i))
                put(rows, at.action + a, i, action, lo, hi)


@inlined
def act(
    policies: Any,
    p: int,
    begin: int,
    step: int,
    n_states: int,
    history: int,
    rows: Any,
    at: Any,
    lo: int,
    hi: int,
) -> None:
    """Write the actions of controller p for its lanes to the rows from at.action on.

    Actions are limited, first their change and then they themselves, and if an action takes only some values,
    rounded to these. `begin` is the number of the tile's first lane in its member.
    """
    kind, numbers, sizes = policies.kind, policies.numbers, policies.sizes
    n_actions = policies.limits.shape[0]
    n_features = n_states + history * (n_states + n_actions)
    if kind == LINEAR:
        _linear(numbers, p, sizes, n_actions, rows, at, lo, hi)
    elif kind == PROGRAM:
        _programs(policies, p, n_actions, rows, at, lo, hi)
    elif kind == FUZZY:
        first = 0
        for a in range(n_actions):
            _fuzzy(numbers, p, first, sizes[a], n_features, rows, at, at.action + a, lo, hi)
            first += 2 + sizes[a] * (1 + 2 * n_features)
    elif kind == PID:
        _pid(policies, p, step, n_actions, rows, at, lo, hi)
    elif kind == NETWORK:
        network(numbers, p, sizes, n_actions, rows, at, lo, hi)
    elif kind == GREEDY:
        greedy(numbers, p, sizes, n_actions, rows, at, lo, hi)
    else:
        _sequence(numbers, begin, step, n_actions, rows, at, lo, hi)
    if policies.rates.size > 0:
        before = at.features + 2 * n_states + n_actions
        for a in range(n_actions):
            _slow_down(policies.rates[a], before + a, rows, at.action + a, lo, hi)
    for a in range(n_actions):
        low, high = policies.limits[a, 0], policies.limits[a, 1]
        for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
            store(rows, at.action + a, i, minimum(maximum(fetch(rows, at.action + a, i), low), high))
        if policies.counts[a] > 0:
            _to_levels(rows, at.action + a, low, high, policies.counts[a], lo, hi)


@part
def _slow_down(most: Any, before: int, rows: Any, row: int, lo: int, hi: int) -> None:
    """Let an action change by `most` at most from that in the row `before`."""
    for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
        last = fetch(rows, before, i)
        store(rows, row, i, minimum(maximum(fetch(rows, row, i), last - most), last + most))


@part
def _to_levels(rows: Any, row: int, low: Any, high: Any, count: Any, lo: int, hi: int) -> None:
    """Round exactly as `task/tables.py` does: no sum follows a product, so that nothing is contracted."""
    width = high - low
    for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
        k = floor((fetch(rows, row, i) - low) * count / width + 0.5)
        store(rows, row, i, minimum(k * width / count + low, high))


@inlined
def _linear(numbers: Any, p: int, used: Any, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Run a linear controller; numbers[p] holds, for each action, a bias and a gain for each used feature."""
    for a in range(n_actions):
        first = a * (1 + used.size)
        for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
            total = splat(rows, numbers[p, first])
            for k in range(used.size):
                total += numbers[p, first + 1 + k] * fetch(rows, at.features + used[k], i)
            put(rows, at.action + a, i, total, lo, hi)


@part
def _programs(policies: Any, p: int, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    begin, end = lo // VECTOR * VECTOR, (hi + VECTOR - 1) // VECTOR * VECTOR
    for a in range(n_actions):
        start, stop = policies.spans[p, a], policies.spans[p, a + 1]
        run_tile(policies.code, policies.operand, start, stop, rows, at.features, at.stack, begin, end)
        for i in range(begin, end, VECTOR):
            put(rows, at.action + a, i, fetch(rows, at.stack, i), lo, hi)


@part
def _fuzzy(
    numbers: Any,
    p: int,
    first: int,
    rules: int,
    n_features: int,
    rows: Any,
    at: Any,
    output: int,
    lo: int,
    hi: int,
) -> None:
    """Evaluate Eqs. (14)–(16) of the paper for one action.

    numbers[p, first:] holds scale and alpha, then for each rule its output and, for each feature, its centre
    and −1/(2 width²), which is 0 if the rule does not use the feature.
    """
    per_rule = 1 + 2 * n_features
    lowest = -np.finfo(rows.dtype).max
    for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
        # Σ mᵢ oᵢ / Σ mᵢ with the largest exponent subtracted from all: exact even if all mᵢ underflow.
        highest = splat(rows, lowest)
        for r in range(rules):
            exponent = splat(rows, 0)
            for f in range(n_features):
                factor = numbers[p, first + 4 + r * per_rule + 2 * f]
                if factor != 0:
                    distance = fetch(rows, at.features + f, i) - numbers[p, first + 3 + r * per_rule + 2 * f]
                    exponent += factor * (distance * distance)
            exponent = maximum(exponent, lowest)
            store(rows, at.stack + r, i, exponent)
            highest = maximum(highest, exponent)
        weights, total = splat(rows, 0), splat(rows, 0)
        for r in range(rules):
            m = arithmetic.exp(fetch(rows, at.stack + r, i) - highest)
            weights += m
            total += numbers[p, first + 2 + r * per_rule] * m
        value = numbers[p, first] * arithmetic.tanh(numbers[p, first + 1] * (total / weights))
        put(rows, output, i, value, lo, hi)


PER_LOOP, LOOP_SIZES, LOOP_ROWS, SEGMENT = 12, 8, 5, 5


@part
def _pid(policies: Any, p: int, step: int, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Run a PID controller (sec. 3.2 of the paper; `controllers/loops.py`), with time counted in steps.

    `sizes` holds the number of loops; for each its action, its part (-1 outer, 1 inner, 0 neither), the
    features of its state and setpoint, those of the state that its gains depend on (-1: none), the number of
    segments of its schedule, and whether it integrates; then for each action the feature of the action
    before, if its rate is limited (-1: not), and the number and the features of what is fed forward, in pairs
    that add up (-1: none).

    numbers[p] holds for each loop its weight, kp, ki, kd, window, pole of the filter, shares of the setpoint
    in the proportional and in the derivative part, the sign with which it moves the action, and the bias and
    the limits of what an outer loop gives; then the segments of all loops; then for each action its bias, its
    rate and the gains of what is fed forward.
    """
    numbers, sizes = policies.numbers, policies.sizes
    begin, loops, each = lo // VECTOR * VECTOR, sizes[0], LOOP_ROWS + at.ring
    segment = PER_LOOP * loops
    fed = 1 + LOOP_SIZES * loops
    gains = segment
    for k in range(loops):
        gains += SEGMENT * sizes[1 + LOOP_SIZES * k + 6]
    first_fed, first_gain = fed, gains
    for a in range(n_actions):
        for i in range(begin, hi, VECTOR):
            total = splat(rows, numbers[p, gains])
            for k in range(sizes[fed + 1]):
                value = fetch(rows, at.features + sizes[fed + 2 + 2 * k], i)
                if sizes[fed + 3 + 2 * k] >= 0:
                    value = value + fetch(rows, at.features + sizes[fed + 3 + 2 * k], i)
                total = total + numbers[p, gains + 2 + k] * value
            put(rows, at.action + a, i, total, lo, hi)
        gains += 2 + sizes[fed + 1]
        fed += 2 + 2 * sizes[fed + 1]
    for k in range(loops):
        own, number = 1 + LOOP_SIZES * k, PER_LOOP * k
        _loop(numbers, p, number, segment, sizes, own, step, rows, at, at.loops + k * each, begin, lo, hi)
        segment += SEGMENT * sizes[own + 6]
    fed, gains = first_fed, first_gain
    for a in range(n_actions):
        low, high, rate = policies.limits[a, 0], policies.limits[a, 1], numbers[p, gains + 1]
        for i in range(begin, hi, VECTOR):
            wanted = fetch(rows, at.action + a, i)
            rated = wanted
            if sizes[fed] >= 0:
                before = fetch(rows, at.features + sizes[fed], i)
                rated = minimum(maximum(wanted, before - rate), before + rate)
            given = minimum(maximum(rated, low), high)
            for k in range(loops):
                own, total = 1 + LOOP_SIZES * k, at.loops + k * each
                if sizes[own] == a and sizes[own + 7]:
                    summed, push = fetch(rows, total, i), fetch(rows, total + 3, i)
                    further = numbers[p, PER_LOOP * k + 8] * push
                    further = where(wanted > given, further, where(wanted < given, -further, 0.0 * further))
                    summed = summed + where(further > 0, 0.0 * push, push)
                    put(rows, total, i, minimum(maximum(summed, -_MOST_KEPT), _MOST_KEPT), lo, hi)
            put(rows, at.action + a, i, rated, lo, hi)
        gains += 2 + sizes[fed + 1]
        fed += 2 + 2 * sizes[fed + 1]


@inlined
def _loop(
    numbers: Any,
    p: int,
    number: int,
    segment: int,
    sizes: Any,
    own: int,
    step: int,
    rows: Any,
    at: Any,
    total: int,
    begin: int,
    lo: int,
    hi: int,
) -> None:
    """Add a loop to its action, or write the setpoint of an inner loop, which is the next one.

    From row `total` on, a loop has its sum, the last signal of its derivative, the filtered change, what its
    integrator is to add, the setpoint of an inner loop, and the errors of its window.
    """
    weight, pole, pi, pd = (
        numbers[p, number],
        numbers[p, number + 5],
        numbers[p, number + 6] - 1,
        numbers[p, number + 7] - 1,
    )
    last, smooth, push, aimed = total + 1, total + 2, total + 3, total + 4
    window, integral, part = int(numbers[p, number + 4]), sizes[own + 7], sizes[own + 1]
    oldest = total + LOOP_ROWS + (0 if integral else step % window)
    output, x, aim = at.action + sizes[own], at.features + sizes[own + 2], at.features + sizes[own + 3]
    for i in range(begin, hi, VECTOR):
        goal = fetch(rows, aim, i)
        error = -fetch(rows, x, i)  # setpoint − value
        if part == 1:
            value = fetch(rows, x, i) + goal
            goal = fetch(rows, aimed, i)
            error = goal - value
        kp, ki, kd = (
            splat(rows, numbers[p, number + 1]),
            splat(rows, numbers[p, number + 2]),
            splat(rows, numbers[p, number + 3]),
        )
        for s in range(sizes[own + 6]):
            place = segment + SEGMENT * s
            by = fetch(rows, at.features + sizes[own + 4], i) + fetch(rows, at.features + sizes[own + 5], i)
            along = minimum(maximum(by, numbers[p, place]), numbers[p, place + 1]) - numbers[p, place]
            kp, ki, kd = (
                kp + numbers[p, place + 2] * along,
                ki + numbers[p, place + 3] * along,
                kd + numbers[p, place + 4] * along,
            )
        signal = error + pd * goal
        before = signal if step == 0 else fetch(rows, last, i)
        change = signal - before
        if pole > 0:
            filtered = fetch(rows, smooth, i)
            change = filtered + (1 - pole) * (change - filtered)
        change = minimum(maximum(change, -_MOST_KEPT), _MOST_KEPT)
        if integral:
            more = ki * error
            summed = minimum(maximum(fetch(rows, total, i) + more, -_MOST_KEPT), _MOST_KEPT)
        elif part == 1:
            more, summed = 0.0 * error, ki * error
        else:
            recent = fetch(rows, total, i) + (error - fetch(rows, oldest, i))
            put(rows, total, i, recent, lo, hi)
            put(rows, oldest, i, error, lo, hi)
            more, summed = 0.0 * error, ki * recent
        value = weight * (kp * (error + pi * goal) + summed + kd * change)
        if part == -1:
            asked = numbers[p, number + 9] + value
            given = minimum(maximum(asked, numbers[p, number + 10]), numbers[p, number + 11])
            put(rows, aimed + LOOP_ROWS + at.ring, i, given, lo, hi)
            further = weight * more
            further = where(asked > given, further, where(asked < given, -further, 0.0 * further))
            more = where(further > 0, 0.0 * more, more)
        else:
            put(rows, output, i, fetch(rows, output, i) + value, lo, hi)
        put(rows, last, i, signal, lo, hi)
        put(rows, smooth, i, change, lo, hi)
        put(rows, push, i, more, lo, hi)


@part
def _sequence(
    numbers: Any, begin: int, step: int, n_actions: int, rows: Any, at: Any, lo: int, hi: int
) -> None:
    """Apply given actions; `numbers` holds, for each lane of a member, its A actions step after step."""
    for i in range(lo, hi):
        lane = min(begin + i, numbers.shape[0] - 1)
        for a in range(n_actions):
            rows[at.action + a, i] = numbers[lane, step * n_actions + a]
