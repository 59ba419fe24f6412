"""What a step earns every lane of a tile, whether it fails, and what failure means."""

from typing import Any

import numpy as np

from clearloop.kernels.compilation import inlined, part
from clearloop.kernels.interpreter import run_tile
from clearloop.kernels.layout import CLASSES, FORMULA
from clearloop.kernels.network import forward
from clearloop.kernels.rows import load, splat, store
from clearloop.kernels.vectors import VECTOR, anywhere, maximum, where


@inlined
def judge(member: int, reward: Any, rows: Any, at: Any, width: int) -> None:
    """Reward and failure of the step, in their rows."""
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
            store(rows, at.reward, i, load(rows, at.scores, i))


@part
def _follow(code: Any, operand: Any, spans: Any, rows: Any, at: Any, width: int) -> None:
    """The programs of reward and of failure; without the second, nothing fails."""
    run_tile(code, operand, spans[0], spans[1], rows, at.frame, at.stack, 0, width)
    for i in range(0, width, VECTOR):
        store(rows, at.reward, i, load(rows, at.stack, i))
    if spans[2] > spans[1]:
        run_tile(code, operand, spans[1], spans[2], rows, at.frame, at.stack, 0, width)
        for i in range(0, width, VECTOR):
            store(rows, at.fails, i, load(rows, at.stack, i))


@inlined
def _classify(levels: Any, failing: Any, rows: Any, at: Any, width: int) -> None:
    """Reward and failure of the most probable class."""
    for i in range(0, width, VECTOR):
        best, level, fails = load(rows, at.scores, i), splat(rows, levels[0]), splat(rows, failing[0])
        for c in range(1, levels.size):
            score = load(rows, at.scores + c, i)
            better = score > best
            best = where(better, score, best)
            level = where(better, levels[c], level)
            fails = where(better, failing[c], fails)
        store(rows, at.reward, i, level)
        store(rows, at.fails, i, fails)


@inlined
def account(gain: Any, absorbing: bool, on_failure: Any, rows: Any, at: Any, width: int) -> bool:
    """Add the step's reward. Failed lanes stop moving; says whether any lane still does."""
    running = not absorbing
    if absorbing:
        failing = False
        for i in range(0, width, VECTOR):
            failed = maximum(load(rows, at.fails, i), load(rows, at.failed, i))
            failing = failing or anywhere(failed != 0)
            running = running or anywhere(failed == 0)
        if failing:
            _freeze(on_failure, rows, at, width)
    for i in range(0, width, VECTOR):
        store(rows, at.failed, i, maximum(load(rows, at.failed, i), load(rows, at.fails, i)))
    pay(gain, rows, at, width)
    return running


@inlined
def pay(gain: Any, rows: Any, at: Any, width: int) -> None:
    for i in range(0, width, VECTOR):
        reward = load(rows, at.reward, i)
        store(rows, at.total, i, load(rows, at.total, i) + gain * reward)
        store(rows, at.held, i, reward)


@part
def _freeze(on_failure: Any, rows: Any, at: Any, width: int) -> None:
    """What failed before stays and goes on paying; what fails now stops as the plant does."""
    n_states = on_failure.size
    for i in range(0, width, VECTOR):
        before = load(rows, at.failed, i) != 0
        store(rows, at.reward, i, where(before, load(rows, at.held, i), load(rows, at.reward, i)))
    for j in range(n_states):
        after, now, value = at.frame + j, at.frame + n_states + j, on_failure[j]
        stays = np.isnan(value)
        for i in range(0, width, VECTOR):
            landed = load(rows, after, i)
            stopped = landed if stays else where(load(rows, at.fails, i) != 0, value, landed)
            store(rows, after, i, where(load(rows, at.failed, i) != 0, load(rows, now, i), stopped))
