"""Many controllers × members × starts × steps: the value of Eq. (6) of the paper, lane by lane.

Lanes are numbered member by member, in each member controller by controller, in each controller start by
start; a member's lanes fill tiles, of which the last may be narrower. A tile is stepped through the horizon
by one thread, and no lane looks at another, so results do not depend on the number of threads.
"""

from typing import Any

from clearloop.kernels.compilation import inlined, kernel, part
from clearloop.kernels.dynamics import advance, derive, follow, read_table
from clearloop.kernels.layout import LANES, SEQUENCE
from clearloop.kernels.panel import BLOCK
from clearloop.kernels.policies import act
from clearloop.kernels.reward import account, judge, pay
from clearloop.kernels.rows import load, store
from clearloop.kernels.vectors import VECTOR

STATE_LIMIT = 1e12  # nothing may run off to infinity


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
    """Step the tiles [first, last) through the horizon."""
    n_starts, n_actions = job.starts.shape[0], policies.limits.shape[0]
    _, known, n_states = job.setpoints.shape
    steps = job.steps if job.steps > 0 else known
    population = policies.numbers.shape[0] // (n_starts if policies.kind == SEQUENCE else 1)
    count = population * n_starts
    tiles = (count + LANES - 1) // LANES
    recording = outcome.states.shape[0] > 0
    for tile in range(first, last):
        member, begin = tile // tiles, tile % tiles * LANES
        lanes = min(LANES, count - begin)
        width = (lanes + BLOCK - 1) // BLOCK * BLOCK
        offset = member * count + begin
        _begin(begin, lanes, job.starts, n_states, job.history, n_actions, rows, at, width)
        if recording:
            _record(0, offset, lanes, n_states, n_actions, rows, at, outcome)
        gain = rows.dtype.type(1)
        for step in range(steps):
            _observe(step, begin, n_starts, job, n_actions, rows, at, width)
            p, lane = begin // n_starts, 0
            while lane < width:  # each controller's share of this tile
                end = width if p == population - 1 else min((p + 1) * n_starts - begin, width)
                act(policies, p, begin, step, n_states, job.history, rows, at, lane, end)
                p, lane = p + 1, end
            advance(member, dynamics, step, begin, n_starts, job.noise, rows, at, width)
            follow(step + 1, begin, n_starts, job.script, dynamics.ways, rows, at, width)
            if dynamics.order.size:
                _aim(min(step + 1, known - 1), begin, n_starts, job, n_actions, rows, at, width)
                derive(dynamics, rows, at, width)
                _aim(step, begin, n_starts, job, n_actions, rows, at, width)
            judge(member, reward, rows, at, width)
            running = account(gain, dynamics.absorbing, dynamics.on_failure, rows, at, width)
            gain *= rows.dtype.type(job.discount)
            _shift(n_states, n_actions, job.history, rows, at, width)
            if recording:
                _record(step + 1, offset, lanes, n_states, n_actions, rows, at, outcome)
            elif not running:  # every lane has failed: only the bill is left
                for _ in range(step + 1, steps):
                    pay(gain, rows, at, width)
                    gain *= rows.dtype.type(job.discount)
                break
        for i in range(lanes):
            outcome.returns[offset + i] = rows[at.total, i]
            outcome.failed[offset + i] = rows[at.failed, i] != 0


@part
def _begin(
    begin: int,
    lanes: int,
    starts: Any,
    n_states: int,
    history: int,
    n_actions: int,
    rows: Any,
    at: Any,
    width: int,
) -> None:
    """The window that is given; before it, its earliest observation repeated, and actions of 0.

    Lanes beyond the last repeat it.
    """
    n_starts, n_given = starts.shape
    each, present = n_states + n_actions, at.frame + n_states
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
    for row in range(n_given, history * each):
        if row % each < n_states:
            for i in range(0, width, VECTOR):
                store(rows, present + row, i, load(rows, present + row - each, i))


@part
def _observe(
    step: int, begin: int, n_starts: int, job: Any, n_actions: int, rows: Any, at: Any, width: int
) -> None:
    """Features for the controllers: the window, states less their setpoints; and the setpoints."""
    n_states, history = job.setpoints.shape[2], job.history
    each, present = n_states + n_actions, at.frame + n_states
    if at.features == present:  # all setpoints are 0
        return
    _aim(step, begin, n_starts, job, n_actions, rows, at, width)
    aims, seen = present + history * each, at.features + history * each
    for j in range(n_states):
        for i in range(0, width, VECTOR):
            store(rows, seen + j, i, load(rows, aims + j, i))
    for row in range(history * each):
        j = row % each
        for i in range(0, width, VECTOR):
            value = load(rows, present + row, i)
            store(rows, at.features + row, i, value - load(rows, aims + j, i) if j < n_states else value)


@part
def _aim(
    step: int, begin: int, n_starts: int, job: Any, n_actions: int, rows: Any, at: Any, width: int
) -> None:
    """The setpoints of a step, in the frame."""
    n_states = job.setpoints.shape[2]
    aims = at.frame + n_states + job.history * (n_states + n_actions)
    for j in range(n_states):
        read_table(job.setpoints, step, j, begin, n_starts, rows, aims + j, width)


@inlined
def _shift(n_states: int, n_actions: int, history: int, rows: Any, at: Any, width: int) -> None:
    """The present becomes the past."""
    each, present = n_states + n_actions, at.frame + n_states
    for row in range(present + history * each - 1, present + each - 1, -1):
        for i in range(0, width, VECTOR):
            store(rows, row, i, load(rows, row - each, i))
    for j in range(n_states):
        for i in range(0, width, VECTOR):
            store(rows, present + j, i, load(rows, at.frame + j, i))


@part
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
                outcome.actions[offset + i, step - 1, a] = rows[at.action + a, i]
