"""The formula language can be parsed, printed, simplified, evaluated and encoded. See `docs/language.md`."""

from clearloop.expression.encoding import Program, decode, encode
from clearloop.expression.nodes import (
    OPERATIONS,
    Call,
    Expression,
    FormulaError,
    Number,
    Operation,
    Variable,
    complexity,
    evaluate,
    fold,
    is_name,
    substitute,
    variables,
)
from clearloop.expression.parsing import parse
from clearloop.expression.printing import to_latex, to_text, to_typst
from clearloop.expression.simplification import simplify
from clearloop.expression.symbolic import to_sympy

__all__ = [
    "OPERATIONS",
    "Call",
    "Expression",
    "FormulaError",
    "Number",
    "Operation",
    "Program",
    "Variable",
    "complexity",
    "decode",
    "encode",
    "evaluate",
    "fold",
    "is_name",
    "parse",
    "simplify",
    "substitute",
    "to_latex",
    "to_sympy",
    "to_text",
    "to_typst",
    "variables",
]
