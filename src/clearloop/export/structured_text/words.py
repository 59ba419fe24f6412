"""The words of Structured Text: how operations are written, and which names are taken."""

import math
import re
from decimal import Decimal

from clearloop.export.dialect import Dialect
from clearloop.export.precision import Precision
from clearloop.export.structured_text.functions import FUNCTIONS

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
BEGIN, END = "\x02", "\x03"  # around an exponent while a text is made
RESERVED = frozenset(_KEYWORDS.split()) | frozenset(_STANDARD.split()) | frozenset(FUNCTIONS)


def number(value: float, precision: Precision) -> str:
    """`69.8`, `1.0E-5`, `1.0E12`: the standard wants digits on both sides of the point."""
    sign, digits, exponent = Decimal(precision.text(value)).normalize().as_tuple()
    figures, size = "".join(map(str, digits)), len(digits) + int(exponent) - 1
    if -5 < size < 7:
        return f"{Decimal(precision.text(value)).normalize():f}" + ".0" * (int(exponent) >= 0)
    return f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{size}"


def finished(text: str, precision: Precision) -> str:
    """A text in a precision: whole exponents as whole numbers, `<…>` as numbers, `real` as a type."""
    text = re.sub(f"{BEGIN}([0-9.E]+){END}", lambda m: _exponent(m[1]), text)
    text = text.replace(BEGIN, "").replace(END, "")
    if "<" in text:
        for mark, value in _limits(precision).items():
            text = text.replace(f"<{mark}>", number(value, precision))
        text = re.sub(r"<(-?[0-9.e+-]+)>", lambda m: number(float(m[1]), precision), text)
    whole, type_ = "LINT" if precision.name == "double" else "DINT", real(precision)
    text = text.replace("FROM_WHOLE(", f"{whole}_TO_{type_}(").replace("TO_WHOLE(", f"{type_}_TO_{whole}(")
    return re.sub(r"\breal\b", type_, text)


def _exponent(text: str) -> str:
    """A whole one without its point, so that the base may be negative. Beyond LINT, powers are 0 or 1."""
    value = float(text)
    if not value.is_integer():
        return text
    return f"{value:.0f}" if value < 2**31 else f"LINT#{min(int(value), 2**63 - 2)}"


def _limits(precision: Precision) -> dict[str, float]:
    """The largest number; one that stays below it when it is rounded; its logarithm, with a margin; and from
    where on all numbers are whole.
    """
    return {
        "largest": precision.largest,
        "almost": precision.largest * (1 - 8 * precision.unit),
        "logarithm": math.log(precision.largest) * (1 - 16 * precision.unit),
        "whole": 0.5 / precision.unit,
    }


def real(precision: Precision) -> str:
    return "LREAL" if precision.name == "double" else "REAL"


_PLAIN = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "pow": f"EXPT({{0}}, {BEGIN}{{1}}{END})",
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
    "read": "LIMIT({1}, {0}, {2})",
    "wrap": "CL_WRAP({0})",
}

DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=FUNCTIONS, number=number)
