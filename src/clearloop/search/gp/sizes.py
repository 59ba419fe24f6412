"""How large the result of a program usually is, roughly: so that what takes its place fits there."""

from collections.abc import Sequence

from clearloop.expression.operations import BY_OPCODE, NUMBER, VARIABLE
from clearloop.search.gp.genome import Genome

SMALLEST, LARGEST = 1e-9, 1e9
KEEP_SIZE = frozenset({"add", "sub", "min", "max", "abs", "neg", "if", "mul", "div", "tanh", "clip"})
"""Operations that formulas use such that the result is as large as the first argument."""


def usual_size(genome: Genome, sizes: Sequence[float]) -> float:
    """`sizes` of the variables."""
    stack: list[float] = []
    for code, operand in zip(*genome, strict=True):
        if code == NUMBER:
            stack.append(abs(operand))
        elif code == VARIABLE:
            stack.append(sizes[int(operand)])
        else:
            operation = BY_OPCODE[code]
            arguments = stack[-operation.arity :]
            stack[-operation.arity :] = [min(max(_result(operation.name, arguments), SMALLEST), LARGEST)]
    return stack[0]


def _result(name: str, arguments: list[float]) -> float:
    match name:
        case "add" | "sub" | "min" | "max" | "abs" | "neg":
            return max(arguments)
        case "if":
            return max(arguments[1:])
        case "mul":
            return arguments[0] * arguments[1]
        case "div":
            return arguments[0] / max(arguments[1], SMALLEST)
        case "clip":
            return min(arguments[0], max(arguments[1:]))
    return 1.0
