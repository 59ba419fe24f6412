"""States that are derived from others, along the rows of a log: what the engine does step by step."""

from typing import Any

from clearloop.kernels.compilation import kernel
from clearloop.kernels.interpreter import run_tile
from clearloop.kernels.vectors import VECTOR


@kernel
def filter_rows(
    code: Any,
    operand: Any,
    spans: Any,
    order: Any,
    derived: Any,
    table: Any,
    first: Any,
    n_states: int,
    history: int,
    limit: float,
    rows: Any,
) -> None:
    """Fill in the derived columns of a table [n, S + A + S] of states, actions and setpoints.

    spans: [S + 1], the program of each state; order: in which they are derived; derived: [S], whether they
    are; first: [n], where each row's episode begins. Before that: the first observation repeated, actions 0,
    and for the first row derived values of 0. rows: a frame (`layout.py`) and the interpreter's stack.
    """
    n, columns = table.shape
    width = columns - n_states
    stack = n_states + history * width + n_states
    for t in range(n):
        begin = first[t]
        for j in range(n_states):
            rows[j, 0] = table[t, j]
            rows[stack - n_states + j, 0] = table[t, width + j]
        for lag in range(history):
            past = t - 1 - lag
            at = n_states + lag * width
            for j in range(width):
                if past >= begin:
                    rows[at + j, 0] = table[past, j]
                elif j >= n_states or (t == begin and derived[j]):
                    rows[at + j, 0] = 0
                else:
                    rows[at + j, 0] = table[begin, j]
        for j in order:
            run_tile(code, operand, spans[j], spans[j + 1], rows, 0, stack, 0, VECTOR)
            value = min(max(rows[stack, 0], -limit), limit)
            table[t, j] = value
            rows[j, 0] = value
