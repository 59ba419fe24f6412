"""The formula language: parse, print, simplify, typeset, evaluate, encode. See `docs/language.md`."""

from clearloop.expression.encoding import Program, decode, encode
from clearloop.expression.error import FormulaError
from clearloop.expression.evaluation import evaluate
from clearloop.expression.nodes import (
    Call,
    Expression,
    Number,
    Variable,
    complexity,
    fold,
    substitute,
    variables,
)
from clearloop.expression.operations import OPERATIONS, Operation, is_name
from clearloop.expression.parsing import parse
from clearloop.expression.printing import significant, to_text
from clearloop.expression.simplification import simplify
from clearloop.expression.symbolic import to_sympy
from clearloop.expression.typesetting import to_latex, to_typst

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
    "significant",
    "simplify",
    "substitute",
    "to_latex",
    "to_sympy",
    "to_text",
    "to_typst",
    "variables",
]
