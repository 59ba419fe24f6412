"""The dialect of Structured Text: operations, numbers, helper functions, and the names that are reserved."""

import math
import re
from decimal import Decimal
from typing import NamedTuple

from clearloop.exports.printer import Dialect
from clearloop.exports.spans import Precision

# The helper functions that an exported text contains if it calls them. None of them can fail on a PLC: they
# call only functions of the standard, and only for arguments for which the standard defines the result. They
# are written for the type `real`, with numbers as `<0.5>`; `finished` makes LREAL or REAL of it.


class Template(NamedTuple):
    """The template of a helper function.

    Attributes:
        words: The comment before the function.
        inputs: The names of its inputs.
        locals: The names of its local variables.
        body: Its statements.
    """

    words: str
    inputs: tuple[str, ...]
    locals: tuple[str, ...]
    body: str


HELPER_TEMPLATES = {
    "CL_UP": Template(
        "x times 2 to the power of 120.", ("x",), (), "\nCL_UP := x * <1.329227995784916e36>;\n"
    ),
    "CL_DOWN": Template(
        "x divided by 2 to the power of 120.", ("x",), (), "\nCL_DOWN := x * <7.52316384526264e-37>;\n"
    ),
    "CL_LARGEST": Template(
        "The largest finite number, times a share of it.",
        ("share",),
        (),
        """
CL_LARGEST := share * <largest>;
""",
    ),
    "CL_SIGN": Template(
        "The sign of x: -1, 0 or 1.",
        ("x",),
        (),
        """
IF x > <0> THEN
    CL_SIGN := <1>;
ELSIF x < <0> THEN
    CL_SIGN := <-1>;
ELSE
    CL_SIGN := <0>;
END_IF;
""",
    ),
    "CL_ADD": Template(
        "a + b, limited to the largest finite number.",
        ("a", "b"),
        (),
        """
IF a > <0> THEN
    IF b > CL_LARGEST(<1>) - a THEN
        CL_ADD := CL_LARGEST(<1>);
    ELSE
        CL_ADD := a + b;
    END_IF;
ELSIF b < -CL_LARGEST(<1>) - a THEN
    CL_ADD := -CL_LARGEST(<1>);
ELSE
    CL_ADD := a + b;
END_IF;
""",
    ),
    "CL_MUL": Template(
        "a * b, limited to the largest finite number.",
        ("a", "b"),
        (),
        """
IF ABS(b) <= <1> THEN
    CL_MUL := a * b;
ELSIF ABS(a) <= CL_LARGEST(<share>) / ABS(b) THEN
    CL_MUL := a * b;
ELSE
    CL_MUL := SEL((a > <0>) = (b > <0>), -CL_LARGEST(<1>), CL_LARGEST(<1>));
END_IF;
""",
    ),
    "CL_DIV": Template(
        "a / b, limited to the largest finite number; 0 if b is 0.",
        ("a", "b"),
        (),
        """
IF b = <0> THEN
    CL_DIV := <0>;
ELSIF ABS(b) >= <1> THEN
    CL_DIV := a / b;
ELSIF ABS(a) <= CL_LARGEST(<share>) * ABS(b) THEN
    CL_DIV := a / b;
ELSE
    CL_DIV := SEL((a > <0>) = (b > <0>), -CL_LARGEST(<1>), CL_LARGEST(<1>));
END_IF;
""",
    ),
    "CL_EXP": Template(
        "EXP(x), limited to the largest finite number.",
        ("x",),
        (),
        """
IF x > <logarithm> THEN
    CL_EXP := CL_LARGEST(<1>);
ELSE
    CL_EXP := EXP(x);
END_IF;
""",
    ),
    "CL_FLOOR": Template(
        "x, rounded down to a whole number.",
        ("x",),
        ("y",),
        """
IF ABS(x) >= <whole> THEN
    CL_FLOOR := x; (* numbers of this size are whole *)
ELSE
    y := FROM_WHOLE(TO_WHOLE(x));
    IF y > x THEN
        y := y - <1>;
    END_IF;
    CL_FLOOR := y;
END_IF;
""",
    ),
    "CL_LEVEL": Template(
        "x, rounded to the nearest of the levels that divide low to high into count equal steps.",
        ("x", "low", "high", "count"),
        (),
        """
CL_LEVEL := MIN(low + CL_FLOOR((x - low) * count / (high - low) + <0.5>) * (high - low) / count, high);
""",
    ),
    "CL_POWER": Template(
        "base to the power of exponent, limited to the largest finite number; 0 where that is undefined.",
        ("base", "exponent"),
        ("size",),
        """
IF base = <0> THEN
    CL_POWER := SEL(exponent = <0>, <0>, <1>);
    RETURN;
END_IF;
IF CL_MUL(exponent, LN(ABS(base))) > <logarithm> THEN
    size := CL_LARGEST(<1>);
ELSE
    size := EXPT(ABS(base), exponent);
END_IF;
IF base > <0> THEN
    CL_POWER := size;
ELSIF CL_FLOOR(exponent) <> exponent THEN
    CL_POWER := <0>;
ELSIF CL_FLOOR(<0.5> * exponent) = <0.5> * exponent THEN
    CL_POWER := size;
ELSE
    CL_POWER := -size;
END_IF;
""",
    ),
    "CL_ATAN2": Template(
        "The angle of the point (x, y), from -pi to pi.",
        ("y", "x"),
        ("angle",),
        """
IF ABS(y) > ABS(x) THEN
    CL_ATAN2 := SEL(y > <0>, <-1.5707963267948966>, <1.5707963267948966>) - ATAN(x / y);
    RETURN;
END_IF;
IF x = <0> THEN
    CL_ATAN2 := <0>;
    RETURN;
END_IF;
angle := ATAN(y / x);
IF x > <0> THEN
    CL_ATAN2 := angle;
ELSIF y < <0> THEN
    CL_ATAN2 := angle - <3.141592653589793>;
ELSE
    CL_ATAN2 := angle + <3.141592653589793>;
END_IF;
""",
    ),
    "CL_TANH": Template(
        "The hyperbolic tangent of x, accurate near 0 as well.",
        ("x",),
        ("y", "e", "m"),
        """
IF ABS(x) > <20> THEN
    CL_TANH := SEL(x > <0>, <-1>, <1>);
    RETURN;
END_IF;
y := <-2> * ABS(x);
e := EXP(y);
m := y; (* e - 1, computed without cancellation (Kahan) *)
IF e <> <1> THEN
    m := (e - <1>) * y / LN(e);
END_IF;
m := m / (m + <2>);
CL_TANH := SEL(x > <0>, m, -m);
""",
    ),
    "CL_WRAP": Template(
        "The angle x, brought into [-pi, pi).",
        ("x",),
        ("angle",),
        """
CL_WRAP := <-3.141592653589793>;
IF ABS(x) < CL_LARGEST(<share>) THEN
    angle := x - <6.283185307179586> * CL_FLOOR((x + <3.141592653589793>) / <6.283185307179586>);
    IF (angle >= <-3.141592653589793>) AND (angle < <3.141592653589793>) THEN
        CL_WRAP := angle;
    END_IF;
END_IF;
""",
    ),
}
_FUNCTIONS = {name: template.body for name, template in HELPER_TEMPLATES.items()}


_KEYWORDS = """
ABSTRACT ACTION AND AND_THEN ANY ANY_BIT ANY_DATE ANY_INT ANY_NUM ANY_REAL ANY_STRING ARRAY ASSERT AT BOOL
BY BYTE CAL CALC CALCN CASE CHAR CLASS CONFIGURATION CONSTANT CONTINUE DATE DATE_AND_TIME DINT DO DT DWORD
ELSE ELSIF EN END_ACTION END_CASE END_CLASS END_CONFIGURATION END_FOR END_FUNCTION END_FUNCTION_BLOCK END_IF
END_INTERFACE END_METHOD END_NAMESPACE END_PROGRAM END_PROPERTY END_REPEAT END_RESOURCE END_STEP END_STRUCT
END_TRANSITION END_TYPE END_UNION END_VAR END_WHILE ENO EXIT EXTENDS F_EDGE FALSE FINAL FOR FROM FUNCTION
FUNCTION_BLOCK GOTO IF IMPLEMENTS INI INITIAL_STEP INT INTERFACE INTERNAL INTERVAL JMP JMPC JMPCN LABEL LD
LDATE LDN LDT LINT LREAL LTIME LTOD LWORD METHOD MOD NAMESPACE NIL NON_RETAIN NOT NULL OF ON OR OR_ELSE
OVERLAP OVERRIDE PERSISTENT POINTER PRIORITY PRIVATE PROGRAM PROPERTY PROTECTED PUBLIC R_EDGE READ_ONLY
READ_WRITE REAL REF REF_TO REFERENCE REPEAT RESOURCE RET RETAIN RETC RETCN RETURN SINGLE SINT STEP STN
STRING STRUCT SUPER TASK THEN THIS TIME TIME_OF_DAY TO TOD TRANSITION TRUE TYPE UDINT UINT ULINT UNION UNTIL
USING USINT VAR VAR_ACCESS VAR_CONFIG VAR_EXTERNAL VAR_GLOBAL VAR_IN_OUT VAR_INPUT VAR_INST VAR_OUTPUT
VAR_STAT VAR_TEMP WCHAR WHILE WITH WORD WSTRING XOR XSIZEOF
"""
_STANDARD = """
ABS ACOS ADD ADD_TIME ADR ADRINST ASIN ATAN ATAN2 BITADR CEIL CHR CONCAT CONCAT_DATE_TOD COS COSH CTD CTU
CTUD DELETE DIV DIVTIME EQ EXP EXPT F_TRIG FIND FLOOR FRACT GE GT INDEXOF INSERT LE LEFT LEN LIMIT LN LOG LT
MAX MID MIN MOVE MUL MULTIME MUX NE PI R_TRIG REPLACE RIGHT ROL ROR ROUND RS RTC SEL SEMA SHL SHR SIGN SIN
SINH SIZEOF SQRT SR SUB SUB_TIME TAN TANH TOF TON TP TRUNC TRUNC_INT DERIVATIVE HYSTERESIS INTEGRAL PD PID
RAMP
"""
_BEGIN, _END = "\x02", "\x03"  # mark an exponent until `finished` replaces it
RESERVED = frozenset(_KEYWORDS.split()) | frozenset(_STANDARD.split()) | frozenset(_FUNCTIONS)


_LEAST_REAL, _LARGEST_REAL = 1.1754943508222875e-38, 3.4028234663852886e38
_FACTOR = 120  # binary places of CL_UP and CL_DOWN


def st_number(value: float, precision: Precision) -> str:
    """Return a number as `69.8`, `1.0E-5` or `1.0E12`, with digits on both sides of the point.

    A number beyond the range of REAL is computed, exactly: matiec reads literals of LREAL as if they were
    REAL, and refuses those that are too large or too small, also as a product of literals.
    """
    value = precision.rounded(value)
    if value == 0 or _LEAST_REAL <= abs(value) <= _LARGEST_REAL:
        return _literal(value, precision)
    function, factor, count = ("CL_UP", 2.0**-_FACTOR, 0) if abs(value) > 1 else ("CL_DOWN", 2.0**_FACTOR, 0)
    while not _LEAST_REAL <= abs(value) <= _LARGEST_REAL:
        value, count = value * factor, count + 1
    return f"{function}(" * count + _literal(value, precision) + ")" * count


def _literal(value: float, precision: Precision) -> str:
    sign, digits, exponent = Decimal(precision.text(value)).normalize().as_tuple()
    figures, size = "".join(map(str, digits)), len(digits) + int(exponent) - 1
    if -5 < size < 7:
        return f"{Decimal(precision.text(value)).normalize():f}" + ".0" * (int(exponent) >= 0)
    return f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{size}"


def st_literal(value: float, precision: Precision) -> str:
    """Return a number as a literal for an initial value, where a product is not allowed.

    What is too small for REAL becomes 0, and what is too large its largest number.
    """
    if abs(value) < _LEAST_REAL:
        return "0.0"
    return _literal(min(max(value, -_LARGEST_REAL), _LARGEST_REAL), precision)


def finished(text: str, precision: Precision) -> str:
    """Return a text in a precision: `<0.5>` becomes a number, `real` a type, a whole exponent an integer."""
    text = re.sub(f"{_BEGIN}([0-9.E]+){_END}", lambda m: _exponent(m[1]), text)
    text = re.sub(rf"{_BEGIN}(?:CL_UP\()+[0-9.E]+\)+{_END}", _exponent("1e300"), text)
    text = text.replace(_BEGIN, "").replace(_END, "")
    if "<" in text:
        for mark, value in _limits(precision).items():
            text = text.replace(f"<{mark}>", st_number(value, precision))
        text = re.sub(r"<(-?[0-9.e+-]+)>", lambda m: st_number(float(m[1]), precision), text)
    whole, type_ = "LINT" if precision.name == "double" else "DINT", real(precision)
    text = text.replace("FROM_WHOLE(", f"{whole}_TO_{type_}(").replace("TO_WHOLE(", f"{type_}_TO_{whole}(")
    return re.sub(r"\breal\b", type_, text)


def _exponent(text: str) -> str:
    """Return a whole exponent as an integer, so that the base may be negative.

    Exponents beyond LINT may be replaced: such powers are 0 or 1, or overflow.
    """
    value = float(text)
    if not value.is_integer():
        return text
    return f"{value:.0f}" if value < 2**31 else f"LINT#{min(int(value), 2**63 - 2)}"


def _limits(precision: Precision) -> dict[str, float]:
    return {
        "largest": precision.largest,
        "share": 1 - 8 * precision.unit,  # of the largest; stays below it after rounding
        "logarithm": math.log(precision.largest) * (1 - 16 * precision.unit),  # of the largest, with a margin
        "whole": 0.5 / precision.unit,  # all larger numbers are whole
    }


def real(precision: Precision) -> str:
    """Return the type of real numbers in a precision."""
    return "LREAL" if precision.name == "double" else "REAL"


_PLAIN = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "pow": f"EXPT({{0}}, {_BEGIN}{{1}}{_END})",
    "neg": "-{0}",
    "min": "MIN({0}, {1})",
    "max": "MAX({0}, {1})",
    "abs": "ABS({0})",
    "sqrt": "SQRT({0})",
    "exp": "EXP({0})",
    "log": "LN({0})",
    "sin": "SIN({0})",
    "cos": "COS({0})",
    "tan": "TAN({0})",
    "atan2": "CL_ATAN2({0}, {1})",
    "tanh": "CL_TANH({0})",
    "sign": "CL_SIGN({0})",
    "clip": "{0}",
    "wrap": "{0}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "eq": "{0} = {1}",
    "ne": "{0} <> {1}",
    "and": "{0} AND {1}",
    "or": "{0} OR {1}",
    "not": "NOT ({0})",
    "if": "SEL({0}, {2}, {1})",
}
_SPECIAL = {
    "add": "CL_ADD({0}, {1})",
    "sub": "CL_ADD({0}, -({1}))",
    "mul": "CL_MUL({0}, {1})",
    "div": "CL_DIV({0}, {1})",
    "pow": "CL_POWER({0}, {1})",
    "sqrt": "SQRT(MAX({0}, <0>))",
    "exp": "CL_EXP({0})",
    "log": "LN(MAX({0}, <1e-30>))",
    "atan2": "CL_ATAN2({0}, {1})",
    "clip": "LIMIT({1}, {0}, {2})",
    "clip_anyhow": "MIN(MAX({0}, {1}), {2})",  # the standard does not say what LIMIT does then
    "read": "LIMIT({1}, {0}, {2})",
    "wrap": "CL_WRAP({0})",
}

DIALECT = Dialect(
    plain=_PLAIN, special=_SPECIAL, helpers=_FUNCTIONS, number=st_number, truths=("FALSE", "TRUE")
)
