"""The rollout kernel computes the return of Eq. (6) for many controllers × members × starts, lane by lane.

Lanes are numbered member by member, in each member controller by controller, in each controller start by
start. The lanes of a member fill tiles, of which the last may be narrower. One thread takes a tile through
the horizon, and no lane depends on another, so results do not depend on the number of threads.
"""

from typing import Any

import numpy as np

from clearloop.kernels.compilation import inlined, kernel, part
from clearloop.kernels.interpreter import run_tile
from clearloop.kernels.layout import CLASSES, DRIVEN, FORMULA, LANES, MOVED, NETWORKS, SEQUENCE
from clearloop.kernels.network import BLOCK, forward, length
from clearloop.kernels.policies import act
from clearloop.kernels.vectors import VECTOR, anywhere, fetch, maximum, minimum, splat, store, where

# The next state of every lane is predicted by networks or integrated; or a script gives it; or it is derived.


@inlined
def advance(
    member: int,
    dynamics: Any,
    step: int,
    begin: int,
    n_starts: int,
    noise: Any,
    rows: Any,
    at: Any,
    width: int,
) -> None:
    """Write the next states, within bounds, to the first rows of the frame; states not MOVED stay."""
    n_states = dynamics.ways.size
    if dynamics.kind == NETWORKS:
        _predict(member, dynamics.networks, dynamics.ways, rows, at, width)
        if noise.shape[0] > 0:
            _disturb(step, begin, n_starts, noise, dynamics.ways, rows, at, width)
    else:
        _integrate(dynamics, n_states, rows, at, width)
    for j in range(n_states):
        _limit(dynamics.bounds, j, at.frame + j, rows, at, width)


@inlined
def _predict(member: int, networks: Any, ways: Any, rows: Any, at: Any, width: int) -> None:
    """Add to each MOVED state the change that its network predicts from states and actions."""
    size, moved = networks.numbers.size // networks.total, 0
    now, layers = at.frame + ways.size, length(networks.sizes)
    for j in range(ways.size):
        moved += ways[j] == MOVED
    network = member * moved
    for j in range(ways.size):
        if ways[j] == MOVED:
            forward(
                networks.numbers, network * size, networks.sizes, networks.activations,
                rows, now, at.frame + j, at.hidden, at.widest, 0, width,
            )  # fmt: skip
            if size > layers:  # the gains of a linear part follow
                _add_linear(
                    networks.numbers, network * size + layers, size - layers, rows, now, at.frame + j, width
                )
            network += 1
        else:
            for i in range(0, width, VECTOR):
                store(rows, at.frame + j, i, 0)
    for j in range(ways.size):
        for i in range(0, width, VECTOR):
            store(rows, at.frame + j, i, fetch(rows, now + j, i) + fetch(rows, at.frame + j, i))


@part
def _add_linear(numbers: Any, at: int, inputs: int, rows: Any, x: int, y: int, width: int) -> None:
    """Add to row y the linear function of the rows from x on whose gains start at numbers[at]."""
    for i in range(0, width, VECTOR):
        total = fetch(rows, y, i)
        for k in range(inputs):
            total = total + numbers[at + k] * fetch(rows, x + k, i)
        store(rows, y, i, total)


@part
def _disturb(
    step: int, begin: int, n_starts: int, noise: Any, ways: Any, rows: Any, at: Any, width: int
) -> None:
    """Add the noise: what the log showed besides what networks can predict."""
    moved = 0
    for j in range(ways.size):
        if ways[j] == MOVED:
            read_signal(noise, step, moved, begin, n_starts, rows, at.hidden, width)
            for i in range(0, width, VECTOR):
                store(rows, at.frame + j, i, fetch(rows, at.frame + j, i) + fetch(rows, at.hidden, i))
            moved += 1


@part
def _integrate(dynamics: Any, n_states: int, rows: Any, at: Any, width: int) -> None:
    """Integrate by the classical Runge–Kutta method, with constant actions.

    The states of each stage are written where derivatives read states.
    """
    base, slope, total = at.slopes, at.slopes + n_states, at.slopes + 2 * n_states
    h = dynamics.dt / dynamics.substeps
    for j in range(n_states):
        _copy(rows, at.frame + n_states + j, at.frame + j, width)
    for _ in range(dynamics.substeps):
        for j in range(n_states):
            _copy(rows, at.frame + j, base + j, width)
            _copy(rows, at.frame + j, total + j, width)
        for stage in range(4):
            for j in range(n_states):
                if dynamics.ways[j] == MOVED:
                    start, stop = dynamics.spans[j], dynamics.spans[j + 1]
                    run_tile(dynamics.code, dynamics.operand, start, stop, rows, at.frame, at.stack, 0, width)
                    _copy(rows, at.stack, slope + j, width)
            weight = h / 6 if stage in (0, 3) else h / 3
            reach = h if stage == 2 else h / 2
            for j in range(n_states):
                if dynamics.ways[j] != MOVED:
                    continue
                for i in range(0, width, VECTOR):
                    steepness = fetch(rows, slope + j, i)
                    moved = fetch(rows, total + j, i) + weight * steepness
                    store(rows, total + j, i, moved)
                    ahead = fetch(rows, base + j, i) + reach * steepness
                    store(rows, at.frame + j, i, moved if stage == 3 else ahead)


@inlined
def _copy(rows: Any, source: int, target: int, width: int) -> None:
    for i in range(0, width, VECTOR):
        store(rows, target, i, fetch(rows, source, i))


@part
def follow(
    step: int, begin: int, n_starts: int, script: Any, ways: Any, rows: Any, at: Any, width: int
) -> None:
    """Set driven states to the values of the script; without a script they stay."""
    driven = 0
    for j in range(ways.size):
        if ways[j] == DRIVEN and script.shape[0] > 0:
            read_signal(script, step, driven, begin, n_starts, rows, at.frame + j, width)
            driven += 1


@part
def derive(dynamics: Any, rows: Any, at: Any, width: int) -> None:
    """Compute derived states from the frame of the step and from states derived before them."""
    for j in dynamics.order:
        start, stop = dynamics.spans[j], dynamics.spans[j + 1]
        run_tile(dynamics.code, dynamics.operand, start, stop, rows, at.frame, at.stack, 0, width)
        _limit(dynamics.bounds, j, at.stack, rows, at, width)


@inlined
def _limit(bounds: Any, j: int, source: int, rows: Any, at: Any, width: int) -> None:
    """Write a row as the next value of state j, within its bounds."""
    low, high = bounds[j, 0], bounds[j, 1]
    for i in range(0, width, VECTOR):
        store(rows, at.frame + j, i, minimum(maximum(fetch(rows, source, i), low), high))


@inlined
def read_signal(
    table: Any, step: int, column: int, begin: int, n_starts: int, rows: Any, row: int, width: int
) -> None:
    """Write a column of a table [N or 1, T, columns] to a row, by each lane's start or the same for all."""
    if table.shape[0] == 1:
        for i in range(0, width, VECTOR):
            store(rows, row, i, table[0, step, column])
        return
    start = begin % n_starts
    for i in range(width):
        rows[row, i] = table[start, step, column]
        start = start + 1 if start + 1 < n_starts else 0


# Every step has a reward and may end the episode: by failure (1) or by success (-1), which may be absorbing.


@inlined
def judge_step(member: int, reward: Any, rows: Any, at: Any, width: int) -> None:
    """Write the reward of the step, and how it ends the episode, to their rows."""
    if reward.kind == FORMULA:
        _follow(reward.code, reward.operand, reward.spans, rows, at, width)
        return
    networks = reward.networks
    first = member * (networks.numbers.size // networks.total)
    forward(
        networks.numbers, first, networks.sizes, networks.activations,
        rows, at.frame, at.scores, at.hidden, at.widest, 0, width,
    )  # fmt: skip
    if reward.kind == CLASSES:
        _classify(reward.levels, reward.failing, rows, at, width)
    else:
        for i in range(0, width, VECTOR):
            store(rows, at.reward, i, fetch(rows, at.scores, i))


@part
def _follow(code: Any, operand: Any, spans: Any, rows: Any, at: Any, width: int) -> None:
    """Run the programs of the reward and of how the step ends the episode; without the second, none ends."""
    run_tile(code, operand, spans[0], spans[1], rows, at.frame, at.stack, 0, width)
    for i in range(0, width, VECTOR):
        store(rows, at.reward, i, fetch(rows, at.stack, i))
    if spans[2] > spans[1]:
        run_tile(code, operand, spans[1], spans[2], rows, at.frame, at.stack, 0, width)
        for i in range(0, width, VECTOR):
            store(rows, at.fails, i, fetch(rows, at.stack, i))


@inlined
def _classify(levels: Any, failing: Any, rows: Any, at: Any, width: int) -> None:
    """Write reward and failure of the most probable class."""
    for i in range(0, width, VECTOR):
        best, level, fails = fetch(rows, at.scores, i), splat(rows, levels[0]), splat(rows, failing[0])
        for c in range(1, levels.size):
            score = fetch(rows, at.scores + c, i)
            better = score > best
            best = where(better, score, best)
            level = where(better, levels[c], level)
            fails = where(better, failing[c], fails)
        store(rows, at.reward, i, level)
        store(rows, at.fails, i, fails)


@inlined
def account(gain: Any, absorbing: bool, on_failure: Any, rows: Any, at: Any, width: int) -> bool:
    """Add the step's reward, stop lanes that have ended, and return whether any lane still moves."""
    running, ending = not absorbing, False
    if absorbing:
        for i in range(0, width, VECTOR):
            before = fetch(rows, at.failed, i)
            ended = where(before != 0, before, fetch(rows, at.fails, i))
            ending = ending or anywhere(ended != 0)
            running = running or anywhere(ended == 0)
        if ending:
            _freeze(on_failure, rows, at, width)
    for i in range(0, width, VECTOR):
        before, now = fetch(rows, at.failed, i), fetch(rows, at.fails, i)
        store(rows, at.failed, i, where(before != 0, before, now) if absorbing else maximum(before, now))
    pay(gain, rows, at, width)
    if ending:
        _hold(rows, at, width)
    return running


@inlined
def pay(gain: Any, rows: Any, at: Any, width: int) -> None:
    """Add the step's reward, discounted by `gain`, to the return."""
    for i in range(0, width, VECTOR):
        reward = fetch(rows, at.reward, i)
        store(rows, at.total, i, fetch(rows, at.total, i) + gain * reward)
        store(rows, at.held, i, reward)


@part
def _hold(rows: Any, at: Any, width: int) -> None:
    """Let lanes that succeeded hold a reward of 0, which they repeat; those that failed hold their last."""
    for i in range(0, width, VECTOR):
        good, reward = fetch(rows, at.failed, i) < 0, fetch(rows, at.held, i)
        store(rows, at.held, i, where(good, 0 * reward, reward))


@part
def _freeze(on_failure: Any, rows: Any, at: Any, width: int) -> None:
    """Keep state and reward of lanes that ended before; lanes that fail now take the values on failure."""
    n_states = on_failure.size
    for i in range(0, width, VECTOR):
        before = fetch(rows, at.failed, i) != 0
        store(rows, at.reward, i, where(before, fetch(rows, at.held, i), fetch(rows, at.reward, i)))
    for j in range(n_states):
        after, now, value = at.frame + j, at.frame + n_states + j, on_failure[j]
        stays = np.isnan(value)
        for i in range(0, width, VECTOR):
            landed = fetch(rows, after, i)
            stopped = landed if stays else where(fetch(rows, at.fails, i) > 0, value, landed)
            store(rows, after, i, where(fetch(rows, at.failed, i) != 0, fetch(rows, now, i), stopped))


STATE_LIMIT = 1e12  # the largest size of a state, so that nothing runs off to infinity


@kernel
def roll_tiles(
    first: int,
    last: int,
    policies: Any,
    dynamics: Any,
    reward: Any,
    job: Any,
    rows: Any,
    at: Any,
    outcome: Any,
) -> None:
    """Take the tiles [first, last) through the horizon, and write the results to `outcome`."""
    n_starts, n_actions = job.starts.shape[0], policies.limits.shape[0]
    _, known, n_states = job.setpoints.shape
    steps = job.steps if job.steps > 0 else known
    population = policies.numbers.shape[0] // (n_starts if policies.kind == SEQUENCE else 1)
    count = population * n_starts
    tiles = (count + LANES - 1) // LANES
    recording = outcome.states.shape[0] > 0
    disturbed = job.disturbances.late.shape[0] > 0
    known_by = at.seen if disturbed else at.frame + n_states  # the window that the controller knows
    for tile in range(first, last):
        member, begin = tile // tiles, tile % tiles * LANES
        lanes = min(LANES, count - begin)
        width = (lanes + BLOCK - 1) // BLOCK * BLOCK
        offset = member * count + begin
        _begin(begin, lanes, job.starts, job.before, n_states, job.history, n_actions, rows, at, width)
        if disturbed:
            _expect(begin, n_starts, job, n_states, n_actions, rows, at, width)
        if recording:
            _record(0, offset, lanes, n_states, n_actions, rows, at, outcome)
        gain = rows.dtype.type(1)
        for step in range(steps):
            if disturbed:
                _sense(step, begin, n_starts, job, n_states, rows, at, width)
                if step == 0:  # what the sensors showed first, noise included
                    _repeat(at.seen, job.starts.shape[1], n_states, job.history, n_actions, rows, width)
            _observe(step, begin, n_starts, job, n_actions, known_by, rows, at, width)
            p, lane = begin // n_starts, 0
            while lane < width:  # the lanes of each controller in this tile
                end = width if p == population - 1 else min((p + 1) * n_starts - begin, width)
                act(policies, p, begin, step, n_states, job.history, rows, at, lane, end)
                p, lane = p + 1, end
            if disturbed:
                _actuate(step, policies.limits, n_states, rows, at, width)
            advance(member, dynamics, step, begin, n_starts, job.noise, rows, at, width)
            follow(step + 1, begin, n_starts, job.script, dynamics.ways, rows, at, width)
            if dynamics.order.size:
                _aim(min(step + 1, known - 1), begin, n_starts, job, n_actions, rows, at, width)
                derive(dynamics, rows, at, width)
                _aim(step, begin, n_starts, job, n_actions, rows, at, width)
            judge_step(member, reward, rows, at, width)
            running = account(gain, dynamics.absorbing, dynamics.on_failure, rows, at, width)
            gain *= rows.dtype.type(job.discount)
            _shift(n_states, n_actions, job.history, at.frame + n_states, rows, at, width)
            if disturbed:
                _shift(n_states, n_actions, job.history, at.seen, rows, at, width)
            if recording:
                _record(step + 1, offset, lanes, n_states, n_actions, rows, at, outcome)
            elif not running:  # every lane has ended: only the rewards that they hold are left to add
                for i in range(0, width, VECTOR):
                    store(rows, at.reward, i, fetch(rows, at.held, i))
                for _ in range(step + 1, steps):
                    pay(gain, rows, at, width)
                    gain *= rows.dtype.type(job.discount)
                break
        for i in range(lanes):
            outcome.returns[offset + i] = rows[at.total, i]
            outcome.failed[offset + i] = rows[at.failed, i] > 0
            outcome.succeeded[offset + i] = rows[at.failed, i] < 0


@part
def _begin(
    begin: int,
    lanes: int,
    starts: Any,
    before: Any,
    n_states: int,
    history: int,
    n_actions: int,
    rows: Any,
    at: Any,
    width: int,
) -> None:
    """Write the given window; before it, the earliest observation is repeated, and actions are `before` or 0.

    Lanes beyond the last one repeat it.
    """
    n_starts, n_given = starts.shape
    present = at.frame + n_states
    for row in range(at.frame, at.slopes):
        for i in range(0, width, VECTOR):
            store(rows, row, i, 0)
    for j in range(n_given):
        start = begin % n_starts
        for i in range(lanes):
            rows[present + j, i] = starts[start, j]
            start = start + 1 if start + 1 < n_starts else 0
        for i in range(lanes, width):
            rows[present + j, i] = rows[present + j, lanes - 1]
    if before.size > 0:
        for row in range(n_given, history * (n_states + n_actions)):
            a = row % (n_states + n_actions) - n_states
            if a >= 0:
                for i in range(0, width, VECTOR):
                    store(rows, present + row, i, before[a])
    _repeat(present, n_given, n_states, history, n_actions, rows, width)


@part
def _repeat(
    present: int, n_given: int, n_states: int, history: int, n_actions: int, rows: Any, width: int
) -> None:
    """Repeat the earliest observation of a window in the rows before it, of which nothing is given."""
    each = n_states + n_actions
    for row in range(n_given, history * each):
        if row % each < n_states:
            for i in range(0, width, VECTOR):
                store(rows, present + row, i, fetch(rows, present + row - each, i))


# Disturbances: what a controller sees and what becomes of its actions (see `Disturbances`).


@part
def _expect(
    begin: int, n_starts: int, job: Any, n_states: int, n_actions: int, rows: Any, at: Any, width: int
) -> None:
    """Write the delay, gain and offset of each lane, what it knows, and the actions that are under way."""
    upset, each, present = job.disturbances, n_states + n_actions, at.frame + n_states
    late = at.waiting + 2 * n_actions
    ring = late + 1
    start = begin % n_starts
    for i in range(width):
        rows[late, i] = upset.late[start]
        for a in range(n_actions):
            rows[at.waiting + a, i] = upset.gain[start, a]
            rows[at.waiting + n_actions + a, i] = upset.offset[start, a]
        start = start + 1 if start + 1 < n_starts else 0
    for row in range(job.history * each + n_states):
        for i in range(0, width, VECTOR):
            known = fetch(rows, present + row, i) if row < job.history * each else splat(rows, 0)
            store(rows, at.seen + row, i, known)
    for lag in range(1, at.latest + 1):  # chosen `lag` steps before the first step
        for a in range(n_actions):
            row = ring + (at.latest + 1 - lag) * n_actions + a
            for i in range(0, width, VECTOR):
                past = splat(rows, job.before[a]) if job.before.size > 0 else splat(rows, 0)
                if lag < job.history:
                    past = fetch(rows, present + lag * each + n_states + a, i)
                store(rows, row, i, past)


@part
def _sense(
    step: int, begin: int, n_starts: int, job: Any, n_states: int, rows: Any, at: Any, width: int
) -> None:
    """Write the states as sensors show them."""
    noise = job.disturbances.noise
    for j in range(n_states):
        _copy(rows, at.frame + n_states + j, at.seen + j, width)
        if noise.shape[0] > 0:
            i, start = 0, begin % n_starts
            while i < width:  # the lanes up to the last start
                some = min(width - i, n_starts - start)
                for k in range(some):
                    rows[at.seen + j, i + k] += noise[step, j, start + k]
                i, start = i + some, 0


@part
def _actuate(step: int, limits: Any, n_states: int, rows: Any, at: Any, width: int) -> None:
    """Keep the chosen actions, and put in their place what the plant gets."""
    n_actions, size = limits.shape[0], at.latest + 1
    late = at.waiting + 2 * n_actions
    for a in range(n_actions):
        low, high = limits[a, 0], limits[a, 1]
        now = late + 1 + step % size * n_actions + a
        _copy(rows, at.action + a, at.seen + n_states + a, width)
        _copy(rows, at.action + a, now, width)
        for i in range(0, width, VECTOR):
            chosen, delay = fetch(rows, now, i), fetch(rows, late, i)
            for lag in range(1, size):
                before = late + 1 + (step - lag) % size * n_actions + a
                chosen = where(delay == lag, fetch(rows, before, i), chosen)
            applied = fetch(rows, at.waiting + a, i) * chosen + fetch(rows, at.waiting + n_actions + a, i)
            store(rows, at.action + a, i, minimum(maximum(applied, low), high))


@part
def _observe(
    step: int, begin: int, n_starts: int, job: Any, n_actions: int, known: int, rows: Any, at: Any, width: int
) -> None:
    """Write the features of controllers: the window with states minus their setpoints, and the setpoints.

    `known` is the first row of the window that the controller knows.
    """
    n_states, history = job.setpoints.shape[2], job.history
    each = n_states + n_actions
    if at.features == known:  # all setpoints are 0
        return
    _aim(step, begin, n_starts, job, n_actions, rows, at, width)
    aims, seen = at.frame + n_states + history * each, at.features + history * each
    for j in range(n_states):
        for i in range(0, width, VECTOR):
            store(rows, seen + j, i, fetch(rows, aims + j, i))
    for row in range(history * each):
        j = row % each
        for i in range(0, width, VECTOR):
            value = fetch(rows, known + row, i)
            store(rows, at.features + row, i, value - fetch(rows, aims + j, i) if j < n_states else value)


@part
def _aim(
    step: int, begin: int, n_starts: int, job: Any, n_actions: int, rows: Any, at: Any, width: int
) -> None:
    """Write the setpoints of a step to the frame."""
    n_states = job.setpoints.shape[2]
    aims = at.frame + n_states + job.history * (n_states + n_actions)
    for j in range(n_states):
        read_signal(job.setpoints, step, j, begin, n_starts, rows, aims + j, width)


@inlined
def _shift(n_states: int, n_actions: int, history: int, present: int, rows: Any, at: Any, width: int) -> None:
    """Shift the window at `present` by one step: the present becomes the past."""
    each = n_states + n_actions
    for row in range(present + history * each - 1, present + each - 1, -1):
        for i in range(0, width, VECTOR):
            store(rows, row, i, fetch(rows, row - each, i))
    for j in range(n_states):
        for i in range(0, width, VECTOR):
            store(rows, present + j, i, fetch(rows, at.frame + j, i))


@part
def _record(
    step: int, offset: int, lanes: int, n_states: int, n_actions: int, rows: Any, at: Any, outcome: Any
) -> None:
    """Write the present state to the trajectories and, after a step, its action and its reward."""
    for i in range(lanes):
        for j in range(n_states):
            outcome.states[offset + i, step, j] = rows[at.frame + n_states + j, i]
        if step > 0:
            outcome.rewards[offset + i, step - 1] = rows[at.reward, i]
            for a in range(n_actions):
                outcome.actions[offset + i, step - 1, a] = rows[at.action + a, i]
