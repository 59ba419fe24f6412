"""Many controllers × members × starts × steps: the value of Eq. (6) of the paper, lane by lane.

Lanes are numbered member by member, in each member controller by controller, in each controller start by
start; a member's lanes fill whole tiles. A tile is stepped through the horizon by one thread, always with all
of its lanes, so results do not depend on the number of threads.
"""

from typing import Any

import numpy as np

from clearloop.kernels.compilation import kernel
from clearloop.kernels.interpreter import run
from clearloop.kernels.layout import CLASSES, FORMULA, LANES, NETWORKS, SEQUENCE
from clearloop.kernels.network import forward
from clearloop.kernels.policies import act

STATE_LIMIT = 1e12  # a surrogate far outside its data must not run off to infinity


@kernel
def roll_tiles(
    first: int, last: int, policies: Any, dynamics: Any, reward: Any, job: Any, rows: Any, at: Any, outcome: Any
) -> None:
    """Step the tiles [first, last) through the horizon."""
    n_starts, n_states = job.starts.shape
    n_actions = policies.limits.shape[0]
    steps = job.setpoints.shape[0]
    population = policies.numbers.shape[0] // (n_starts if policies.kind == SEQUENCE else 1)
    count = population * n_starts
    tiles = (count + LANES - 1) // LANES
    n_features = n_states + job.history * (n_states + n_actions)
    recording = outcome.states.shape[0] > 0
    for tile in range(first, last):
        member, begin = tile // tiles, tile % tiles * LANES
        lanes = min(LANES, count - begin)
        offset = member * count + begin
        _begin(begin, count, job.starts, job.history, n_actions, rows, at)
        if recording:
            _record(0, offset, lanes, n_states, n_actions, rows, at, outcome)
        gain = rows.dtype.type(1)
        for step in range(steps):
            _observe(step, job.setpoints, job.history, n_actions, rows, at)
            lane = 0
            while lane < LANES:  # each controller's share of this tile
                p = min(begin + lane, count - 1) // n_starts
                end = LANES if p == population - 1 else min((p + 1) * n_starts - begin, LANES)
                act(policies, p, begin, step, n_features, rows, at, lane, end)
                lane = end
            _advance(member, dynamics, n_states, n_actions, rows, at)
            _judge(member, reward, rows, at)
            running = _account(gain, dynamics.absorbing, dynamics.on_failure, rows, at)
            gain *= rows.dtype.type(job.discount)
            _shift(n_states, n_actions, job.history, rows, at)
            if recording:
                _record(step + 1, offset, lanes, n_states, n_actions, rows, at, outcome)
            elif not running:  # every lane has failed: only the bill is left
                for _ in range(step + 1, steps):
                    _pay(gain, rows, at)
                    gain *= rows.dtype.type(job.discount)
                break
        for i in range(lanes):
            outcome.returns[offset + i] = rows[at.total, i]
            outcome.failed[offset + i] = rows[at.failed, i] != 0


@kernel
def _begin(begin: int, count: int, starts: Any, history: int, n_actions: int, rows: Any, at: Any) -> None:
    """The first observation repeated, past actions 0."""
    n_states = starts.shape[1]
    for row in range(at.frame, at.slopes):
        for i in range(LANES):
            rows[row, i] = 0
    for i in range(LANES):
        start = min(begin + i, count - 1) % starts.shape[0]
        for lag in range(history):
            for j in range(n_states):
                rows[at.frame + n_states + lag * (n_states + n_actions) + j, i] = starts[start, j]


@kernel
def _observe(step: int, setpoints: Any, history: int, n_actions: int, rows: Any, at: Any) -> None:
    """Features for the controllers: the window, states less their setpoints; and the setpoints."""
    n_states = setpoints.shape[1]
    width = n_states + n_actions
    present, aims = at.frame + n_states, history * width
    for row in range(aims):
        if row % width < n_states:
            _less(setpoints[step, row % width], rows, present + row, at.features + row)
        elif row >= width:
            _less(0, rows, present + row, at.features + row)
    for j in range(n_states):
        for i in range(LANES):
            rows[at.features + aims + j, i] = setpoints[step, j]
        for i in range(LANES):
            rows[present + aims + j, i] = setpoints[step, j]


@kernel
def _less(amount: Any, rows: Any, source: int, target: int) -> None:
    for i in range(LANES):
        rows[target, i] = rows[source, i] - amount


@kernel
def _advance(member: int, dynamics: Any, n_states: int, n_actions: int, rows: Any, at: Any) -> None:
    """The next state, in the first rows of the frame."""
    for a in range(n_actions):
        for i in range(LANES):
            rows[at.frame + 2 * n_states + a, i] = rows[at.chosen + a, i]
    if dynamics.kind == NETWORKS:
        networks = dynamics.networks
        size = networks.numbers.size // networks.count
        for j in range(n_states):
            first = (member * n_states + j) * size
            now = at.frame + n_states
            forward(
                networks.numbers, first, networks.sizes, networks.activations,
                rows, now, at.scores, at.hidden, at.widest,
            )  # fmt: skip
            for i in range(LANES):
                rows[at.frame + j, i] = rows[now + j, i] + rows[at.scores, i]
    else:
        _integrate(dynamics, n_states, rows, at)
    limit = rows.dtype.type(STATE_LIMIT)
    for row in range(at.frame, at.frame + n_states):
        for i in range(LANES):
            rows[row, i] = min(max(rows[row, i], -limit), limit)


@kernel
def _integrate(dynamics: Any, n_states: int, rows: Any, at: Any) -> None:
    """Classical Runge–Kutta, the action constant. Stages stand where a derivative looks for its states."""
    base, slope, total = at.slopes, at.slopes + n_states, at.slopes + 2 * n_states
    dtype = rows.dtype.type
    h = dtype(dynamics.dt / dynamics.substeps)
    for j in range(n_states):
        for i in range(LANES):
            rows[at.frame + j, i] = rows[at.frame + n_states + j, i]
    for _ in range(dynamics.substeps):
        for j in range(n_states):
            for i in range(LANES):
                rows[base + j, i] = rows[at.frame + j, i]
                rows[total + j, i] = rows[at.frame + j, i]
        for stage in range(4):
            for j in range(n_states):
                start, stop = dynamics.spans[j], dynamics.spans[j + 1]
                run(dynamics.code, dynamics.operand, start, stop, rows, at.frame, at.stack, 0, LANES)
                for i in range(LANES):
                    rows[slope + j, i] = rows[at.stack, i]
            weight = h / dtype(6) if stage in (0, 3) else h / dtype(3)
            reach = h if stage == 2 else h / dtype(2)
            for j in range(n_states):
                for i in range(LANES):
                    rows[total + j, i] += weight * rows[slope + j, i]
                    ahead = rows[base + j, i] + reach * rows[slope + j, i]
                    rows[at.frame + j, i] = rows[total + j, i] if stage == 3 else ahead


@kernel
def _judge(member: int, reward: Any, rows: Any, at: Any) -> None:
    """Reward and failure of the step."""
    if reward.kind == FORMULA:
        middle, end = reward.spans[1], reward.spans[2]
        run(reward.code, reward.operand, reward.spans[0], middle, rows, at.frame, at.stack, 0, LANES)
        for i in range(LANES):
            rows[at.reward, i] = rows[at.stack, i]
        if end > middle:
            run(reward.code, reward.operand, middle, end, rows, at.frame, at.stack, 0, LANES)
            for i in range(LANES):
                rows[at.fails, i] = rows[at.stack, i]
        return
    networks = reward.networks
    first = member * (networks.numbers.size // networks.count)
    forward(
        networks.numbers, first, networks.sizes, networks.activations,
        rows, at.frame, at.scores, at.hidden, at.widest,
    )  # fmt: skip
    if reward.kind == CLASSES:  # the reward of the most probable class
        for i in range(LANES):
            rows[at.reward, i] = reward.levels[0]
            rows[at.fails, i] = reward.failing[0]
        for c in range(1, reward.levels.size):
            level, failing = reward.levels[c], reward.failing[c]
            for i in range(LANES):
                better = rows[at.scores + c, i] > rows[at.scores, i]
                rows[at.scores, i] = rows[at.scores + c, i] if better else rows[at.scores, i]
                rows[at.reward, i] = level if better else rows[at.reward, i]
                rows[at.fails, i] = failing if better else rows[at.fails, i]
    else:
        for i in range(LANES):
            rows[at.reward, i] = rows[at.scores, i]


@kernel
def _pay(gain: Any, rows: Any, at: Any) -> None:
    for i in range(LANES):
        rows[at.total, i] += gain * rows[at.reward, i]


@kernel
def _account(gain: Any, absorbing: bool, on_failure: Any, rows: Any, at: Any) -> bool:
    """Add the step's reward. Failed lanes stop moving; says whether any lane still does."""
    failures = rows.dtype.type(0)
    for i in range(LANES):
        failures += max(rows[at.fails, i], rows[at.failed, i])
    if absorbing and failures > 0:
        _freeze(on_failure, rows, at)
    for i in range(LANES):
        rows[at.failed, i] = max(rows[at.failed, i], rows[at.fails, i])
        rows[at.held, i] = rows[at.reward, i]
    _pay(gain, rows, at)
    return not absorbing or failures < LANES


@kernel
def _freeze(on_failure: Any, rows: Any, at: Any) -> None:
    """What failed before stays and goes on paying; what fails now stops as the plant does."""
    n_states = on_failure.size
    for i in range(LANES):
        rows[at.reward, i] = rows[at.held, i] if rows[at.failed, i] != 0 else rows[at.reward, i]
    for j in range(n_states):
        after, now, value = at.frame + j, at.frame + n_states + j, on_failure[j]
        stays = np.isnan(value)
        for i in range(LANES):
            landed = rows[after, i] if stays or rows[at.fails, i] == 0 else value
            rows[after, i] = rows[now, i] if rows[at.failed, i] != 0 else landed


@kernel
def _shift(n_states: int, n_actions: int, history: int, rows: Any, at: Any) -> None:
    """The present becomes the past."""
    width = n_states + n_actions
    first = at.frame + n_states
    for row in range(first + history * width - 1, first + width - 1, -1):
        for i in range(LANES):
            rows[row, i] = rows[row - width, i]
    for j in range(n_states):
        for i in range(LANES):
            rows[first + j, i] = rows[at.frame + j, i]


@kernel
def _record(
    step: int, offset: int, lanes: int, n_states: int, n_actions: int, rows: Any, at: Any, outcome: Any
) -> None:
    """Write the present state to the trajectories and, after a step, what was done and paid to get there."""
    for i in range(lanes):
        for j in range(n_states):
            outcome.states[offset + i, step, j] = rows[at.frame + n_states + j, i]
        if step > 0:
            outcome.rewards[offset + i, step - 1] = rows[at.reward, i]
            for a in range(n_actions):
                outcome.actions[offset + i, step - 1, a] = rows[at.chosen + a, i]
