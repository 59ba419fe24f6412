"""A linear loop from what each of its halves does with the past: the system s' = M w, and the law a = L w.

w is a window of H rows, the present first, each of S states and A actions; the actions of the present row are
those that the law is choosing.
"""

import numpy as np
from numpy.typing import NDArray

from clearloop.data.cells import Floats


def closed_loop(moves: Floats, law: Floats) -> Floats:
    """What a step does to states and past, from slopes [S, H, W] of the system and [A, H, W] of the law.

    The past is as long as somebody reads it; what nobody reads would only add eigenvalues of 0.
    """
    (s, rows, width), moves, law = moves.shape, moves.reshape(len(moves), -1), law.reshape(len(law), -1)
    chosen = np.arange(s, width)
    matrix = np.eye(rows * width, k=-width)  # what is present now is past then
    matrix[:s] = moves + moves[:, chosen] @ law
    if rows > 1:
        matrix[width + chosen] = law
    read = np.vstack([moves, law]).any(axis=0).reshape(rows, width)
    deepest = np.where(read.any(axis=0), rows - 1 - np.argmax(read[::-1], axis=0), 0)
    kept = np.arange(rows)[:, None] <= deepest
    kept[0, chosen] = False
    return matrix[np.ix_(kept.ravel(), kept.ravel())]


def loop_gains(moves: Floats, law: Floats, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """[A, n] the gain around each action's loop at points z [n], cut there, with all other loops closed.

    Minus what comes back, so that -1 is where the loop sustains itself. A law that reads what it did before
    goes on reading what it chose.
    """
    s, n_actions = len(moves), len(law)
    past = z[:, None] ** -np.arange(moves.shape[1])  # [n, H]
    plant, own = (np.einsum("nh,ohw->now", past, slopes) for slopes in (moves, law))
    states = np.linalg.solve(z[:, None, None] * np.eye(s) - plant[:, :, :s], plant[:, :, s:])
    back = np.linalg.solve(np.eye(n_actions) - own[:, :, s:], own[:, :, :s] @ states)  # [n, A, A]
    gains = []
    for a in range(n_actions):
        others = np.arange(n_actions) != a
        rest = np.eye(n_actions - 1) - back[:, others][:, :, others]
        through = np.linalg.solve(rest, back[:, others, a][:, :, None])
        gains.append(-back[:, a, a] - (back[:, a, others][:, None] @ through)[:, 0, 0])
    return np.array(gains)


def delayed(moves: Floats, action: int, steps: int) -> Floats:
    """[S, H + steps, W] of a system that an action reaches so many steps later."""
    late = lengthened(moves, moves.shape[1] + steps)
    column = len(moves) + action
    late[:, :, column] = np.roll(late[:, :, column], steps, axis=1)
    return late


def lengthened(slopes: Floats, rows: int) -> Floats:
    """[…, rows, W] with nothing read of the rows that are added."""
    return np.pad(slopes, ((0, 0), (0, rows - slopes.shape[1]), (0, 0)))
