"""`filter_rows` derives states from others along the rows of a log, as the engine does step by step."""

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
    before: Any,
    n_states: int,
    history: int,
    limit: float,
    rows: Any,
) -> None:
    """Fill in the derived columns of a table.

    Before an episode, its first observation is repeated, actions are as they were before the start, and for
    the first row derived values are 0.

    Args:
        code: Opcodes of all programs.
        operand: Operands of all programs.
        spans: [S + 1] start of the program of each state, and end of the last.
        order: The states that are derived, in this order.
        derived: [S] whether each state is derived.
        table: [n, S + A + S] states, actions and setpoints.
        first: [n] row in which each row's episode begins.
        before: [A] the actions before the start.
        n_states: S.
        history: H, rows of the window.
        limit: The largest size of a derived state.
        rows: Scratch: a frame (`layout.py`) and the interpreter's stack.
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
                elif j >= n_states:
                    rows[at + j, 0] = before[j - n_states]
                elif t == begin and derived[j]:
                    rows[at + j, 0] = 0
                else:
                    rows[at + j, 0] = table[begin, j]
        for j in order:
            run_tile(code, operand, spans[j], spans[j + 1], rows, 0, stack, 0, VECTOR)
            value = min(max(rows[stack, 0], -limit), limit)
            table[t, j] = value
            rows[j, 0] = value
