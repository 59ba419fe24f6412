"""Formulas as text with no needless parentheses, which parses back to the very same tree."""

from collections.abc import Sequence

from clearloop.expression.nodes import Expression, Number, Variable, fold
from clearloop.expression.operations import ATOM, NEGATION, POWER, PRODUCT, Operation

_Piece = tuple[str, int]  # a text, and how tightly its outermost operation binds


def to_text(expression: Expression) -> str:
    text, _ = fold(expression, _leaf, _call)
    return text


def _leaf(node: Number | Variable) -> _Piece:
    negative = isinstance(node, Number) and node.value < 0
    return str(node), NEGATION if negative else ATOM


def _call(operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
    if not operation.symbol:
        text = f"{operation.name}({', '.join(argument for argument, _ in arguments)})"
    elif operation.arity == 1:
        text = _prefix(operation, *arguments)
    else:
        text = _infix(operation, *arguments)
    return text, operation.precedence


def _prefix(operation: Operation, operand: _Piece) -> str:
    if operation.symbol.isalpha():
        return f"{operation.symbol} {_bracketed(operand, operation.precedence)}"
    if operand[1] == ATOM and operand[0][0].isdigit():
        return f"{operation.symbol}({operand[0]})"  # -3 is a number, -(3) is a number's negation
    return f"{operation.symbol}{_bracketed(operand, operation.precedence)}"


def _infix(operation: Operation, left: _Piece, right: _Piece) -> str:
    # All associate to the left but **, whose exponent may also start with a minus sign.
    from_left = operation.precedence + (operation.precedence == POWER)
    from_right = operation.precedence + 1 if operation.precedence < POWER else NEGATION
    space = " " if operation.precedence < PRODUCT else ""
    return f"{_bracketed(left, from_left)}{space}{operation.symbol}{space}{_bracketed(right, from_right)}"


def _bracketed(piece: _Piece, precedence: int) -> str:
    text, binds = piece
    return text if binds >= precedence else f"({text})"


def significant(value: float, digits: int) -> float:
    """The number whose text has so many significant digits."""
    return float(f"{value:.{digits}g}")
