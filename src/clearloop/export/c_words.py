"""The words of C: operations, the small functions that total ones need, and names that are taken.

Written for `real`, with functions of math.h by their names for double; `typed` makes double or float of it.
"""

import re

from clearloop.export.c_helpers import HELPERS
from clearloop.export.dialect import PLAIN, SPECIAL, Dialect
from clearloop.export.precision import Precision
from clearloop.export.statements import Syntax

_MATH = "fabs fmin fmax sqrt exp log sin cos tan atan2 tanh floor pow"

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof real main errno NULL NAN INFINITY HUGE_VAL bool true false class new
delete this template ceil round trunc rint fmod exp2 log2 log10 log1p expm1 cosh sinh acosh asinh
atanh acos asin atan cbrt erf erfc hypot ldexp frexp modf scalb logb gamma lgamma tgamma drem
remainder fdim fma j0 j1 jn y0 y1 yn signgam index isnan isinf isfinite signbit div abs labs
"""

RESERVED = frozenset(_KEYWORDS.split()) | {
    name + suffix for name in _MATH.split() + _KEYWORDS.split() for suffix in ("", "f", "l")
}


def _number(value: float, precision: Precision) -> str:
    return precision.text(value) + "f" * (precision.name == "single")


def typed(text: str, precision: Precision) -> str:
    """C for a precision."""
    if precision.name == "single":
        text = re.sub(rf"\b({'|'.join(_MATH.split())})\(", r"\1f(", text)
    text = re.sub(r"<(-?[0-9.e+-]+)>", lambda m: _number(float(m[1]), precision), text)
    return re.sub(r"\breal\b", "double" if precision.name == "double" else "float", text)


_PLAIN = PLAIN | {
    "pow": "pow({0}, {1})",
    "min": "fmin({0}, {1})",
    "max": "fmax({0}, {1})",
    "abs": "fabs({0})",
    "sqrt": "sqrt({0})",
    "exp": "exp({0})",
    "log": "log({0})",
    "sin": "sin({0})",
    "cos": "cos({0})",
    "tan": "tan({0})",
    "atan2": "atan2({0}, {1})",
    "tanh": "tanh({0})",
}

_SPECIAL = SPECIAL | {
    "sqrt": "sqrt(fmax({0}, <0>))",
    "log": "log(fmax({0}, <1e-30>))",
}

DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=HELPERS, number=_number)

SYNTAX = Syntax(
    let="const real {target} = {value};",
    store="memory->{past}[0] = {value};",
    repeat="if (first) {{ fill(memory->{past}, {count}, memory->{past}[0]); }}",
    sum="real {target} = {zero};\nfor (int k = 0; k < {count}; k++) {{ {target} += memory->{past}[k]; }}",
    fill="real {target}[{count}] = {{ {values} }};",
    table="static const real {name}[{count}] = {{ {values} }};",
    mean="const real {target} = weighted_mean({source}, {table}, {count});",
    layer="real {target}[{count}];\n{function}({weights}, {bias}, {source}, {width}, {target}, {count});",
    best_open="real {value} = {zero};\nint {chosen} = 0;\nfor (int row = 0; row < {count}; row++) {{",
    best_input="{source}[{element}] = {table}[{row_index}];",
    best_close="    if (row == 0 || {last}[0] > {value}) {{ {value} = {last}[0]; {chosen} = row; }}\n}}",
    best_choice="const real {target} = {table}[{chosen_index}];",
    output="real {name} = {value};",
    clip="{name} = clip({name}, {low}, {high});",
    level="{name} = level({name}, {low}, {high}, {parts});",
    answer="output->{name} = {name};",
)
