"""Transitions: what was seen and done before each step, and what came of it."""

from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.data.episodes import first_rows, last_rows


class Transitions(NamedTuple):
    """n steps, each from a row to the next one of its episode. S states, A actions."""

    window: Floats
    """[n, history * (S + A)]: states and actions of the row (lag 0), then those of lag 1, and so on.
    Before an episode's start stand its first observation and actions of 0."""
    next: Floats
    """[n, S]: the states after the step."""
    reward: Floats | None
    """[n]"""
    terminal: Flags
    """[n]: whether the step led to a terminal state."""
    episode: Ints
    """[n]"""


def make_transitions(
    states: Floats, actions: Floats, rewards: Floats | None, terminal: Flags, episodes: Ints, history: int
) -> Transitions:
    rows = np.flatnonzero(~last_rows(episodes))
    return Transitions(
        window=_windows(states, actions, rows, first_rows(episodes)[rows], history),
        next=states[rows + 1],
        reward=None if rewards is None else rewards[rows],
        terminal=terminal[rows + 1],
        episode=episodes[rows],
    )


def _windows(states: Floats, actions: Floats, rows: Ints, first: Ints, history: int) -> Floats:
    width = states.shape[1]
    window = np.empty((len(rows), history, width + actions.shape[1]))
    for lag in range(history):
        past = np.maximum(rows - lag, first)
        window[:, lag, :width] = states[past]
        window[:, lag, width:] = np.where((rows - lag >= first)[:, None], actions[past], 0.0)
    return window.reshape(len(rows), -1)
