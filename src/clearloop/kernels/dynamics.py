"""The next state of every lane of a tile: predicted by networks, or integrated; scripted; derived."""

from typing import Any

from clearloop.kernels.compilation import inlined, part
from clearloop.kernels.interpreter import run_tile
from clearloop.kernels.layout import DRIVEN, MOVED, NETWORKS
from clearloop.kernels.network import forward
from clearloop.kernels.rows import load, store
from clearloop.kernels.vectors import VECTOR, maximum, minimum


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
    """The next state, within bounds, in the first rows of the frame; what is not moved stays."""
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
    """Each state that is moved changes by what its network says of the states and actions."""
    size, moved = networks.numbers.size // networks.total, 0
    now = at.frame + ways.size
    for j in range(ways.size):
        moved += ways[j] == MOVED
    network = member * moved
    for j in range(ways.size):
        if ways[j] == MOVED:
            forward(
                networks.numbers, network * size, networks.sizes, networks.activations,
                rows, now, at.frame + j, at.hidden, at.widest, 0, width,
            )  # fmt: skip
            network += 1
        else:
            for i in range(0, width, VECTOR):
                store(rows, at.frame + j, i, 0)
    for j in range(ways.size):
        for i in range(0, width, VECTOR):
            store(rows, at.frame + j, i, load(rows, now + j, i) + load(rows, at.frame + j, i))


@part
def _disturb(
    step: int, begin: int, n_starts: int, noise: Any, ways: Any, rows: Any, at: Any, width: int
) -> None:
    """What the log showed besides what networks can predict."""
    moved = 0
    for j in range(ways.size):
        if ways[j] == MOVED:
            read_table(noise, step, moved, begin, n_starts, rows, at.hidden, width)
            for i in range(0, width, VECTOR):
                store(rows, at.frame + j, i, load(rows, at.frame + j, i) + load(rows, at.hidden, i))
            moved += 1


@part
def _integrate(dynamics: Any, n_states: int, rows: Any, at: Any, width: int) -> None:
    """Classical Runge–Kutta, the actions constant. Stages stand where a derivative looks for its states."""
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
                    steepness = load(rows, slope + j, i)
                    moved = load(rows, total + j, i) + weight * steepness
                    store(rows, total + j, i, moved)
                    ahead = load(rows, base + j, i) + reach * steepness
                    store(rows, at.frame + j, i, moved if stage == 3 else ahead)


@inlined
def _copy(rows: Any, source: int, target: int, width: int) -> None:
    for i in range(0, width, VECTOR):
        store(rows, target, i, load(rows, source, i))


@part
def follow(
    step: int, begin: int, n_starts: int, script: Any, ways: Any, rows: Any, at: Any, width: int
) -> None:
    """Driven states are what the script says; without one they stay."""
    driven = 0
    for j in range(ways.size):
        if ways[j] == DRIVEN and script.shape[0] > 0:
            read_table(script, step, driven, begin, n_starts, rows, at.frame + j, width)
            driven += 1


@part
def derive(dynamics: Any, rows: Any, at: Any, width: int) -> None:
    """Derived states, from the frame of the step and from those derived before them."""
    for j in dynamics.order:
        start, stop = dynamics.spans[j], dynamics.spans[j + 1]
        run_tile(dynamics.code, dynamics.operand, start, stop, rows, at.frame, at.stack, 0, width)
        _limit(dynamics.bounds, j, at.stack, rows, at, width)


@inlined
def _limit(bounds: Any, j: int, source: int, rows: Any, at: Any, width: int) -> None:
    """A row as the next value of state j, within its bounds."""
    low, high = bounds[j, 0], bounds[j, 1]
    for i in range(0, width, VECTOR):
        store(rows, at.frame + j, i, minimum(maximum(load(rows, source, i), low), high))


@inlined
def read_table(
    table: Any, step: int, column: int, begin: int, n_starts: int, rows: Any, row: int, width: int
) -> None:
    """[N or 1, T, columns] of each lane's start, or of all, into a row."""
    if table.shape[0] == 1:
        for i in range(0, width, VECTOR):
            store(rows, row, i, table[0, step, column])
        return
    start = begin % n_starts
    for i in range(width):
        rows[row, i] = table[start, step, column]
        start = start + 1 if start + 1 < n_starts else 0
