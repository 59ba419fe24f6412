"""Small functions that exported texts bring along where they need them. None of them can fail on a PLC.

Written for `real`, with numbers as `<0.5>`: see `finished` in `words.py`. Only functions of the standard are
called, and only where the standard says what they give.
"""

from typing import NamedTuple


class Template(NamedTuple):
    words: str
    inputs: tuple[str, ...]
    locals: tuple[str, ...]
    body: str


TEMPLATES = {
    "CL_SIGN": Template(
        "-1, 0 or 1",
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
        "a + b; the largest number in place of what is larger",
        ("a", "b"),
        (),
        """
IF a > <0> THEN
    IF b > <largest> - a THEN
        CL_ADD := <largest>;
    ELSE
        CL_ADD := a + b;
    END_IF;
ELSIF b < -<largest> - a THEN
    CL_ADD := -<largest>;
ELSE
    CL_ADD := a + b;
END_IF;
""",
    ),
    "CL_MUL": Template(
        "a * b; the largest number in place of what is larger",
        ("a", "b"),
        (),
        """
IF ABS(b) <= <1> THEN
    CL_MUL := a * b;
ELSIF ABS(a) <= <almost> / ABS(b) THEN
    CL_MUL := a * b;
ELSE
    CL_MUL := SEL((a > <0>) = (b > <0>), -<largest>, <largest>);
END_IF;
""",
    ),
    "CL_DIV": Template(
        "a / b; 0 where b is 0; the largest number in place of what is larger",
        ("a", "b"),
        (),
        """
IF b = <0> THEN
    CL_DIV := <0>;
ELSIF ABS(b) >= <1> THEN
    CL_DIV := a / b;
ELSIF ABS(a) <= <almost> * ABS(b) THEN
    CL_DIV := a / b;
ELSE
    CL_DIV := SEL((a > <0>) = (b > <0>), -<largest>, <largest>);
END_IF;
""",
    ),
    "CL_EXP": Template(
        "EXP(x); the largest number in place of what is larger",
        ("x",),
        (),
        """
IF x > <logarithm> THEN
    CL_EXP := <largest>;
ELSE
    CL_EXP := EXP(x);
END_IF;
""",
    ),
    "CL_FLOOR": Template(
        "the largest whole number that is not above x",
        ("x",),
        ("y",),
        """
IF ABS(x) >= <whole> THEN
    CL_FLOOR := x; (* such numbers are whole *)
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
        "the nearest of the levels that cut low to high into count equal steps",
        ("x", "low", "high", "count"),
        (),
        """
CL_LEVEL := MIN(low + CL_FLOOR((x - low) * count / (high - low) + <0.5>) * (high - low) / count, high);
""",
    ),
    "CL_POWER": Template(
        "base to the exponent; 0 where there is no such number; never more than the largest number",
        ("base", "exponent"),
        ("size",),
        """
IF base = <0> THEN
    CL_POWER := SEL(exponent = <0>, <0>, <1>);
    RETURN;
END_IF;
IF CL_MUL(exponent, LN(ABS(base))) > <logarithm> THEN
    size := <largest>;
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
        "the angle of the point (x, y), from -pi to pi",
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
        "the hyperbolic tangent, exact near 0, too",
        ("x",),
        ("y", "e", "m"),
        """
IF ABS(x) > <20> THEN
    CL_TANH := SEL(x > <0>, <-1>, <1>);
    RETURN;
END_IF;
y := <-2> * ABS(x);
e := EXP(y);
m := y; (* e - 1, computed as Kahan does *)
IF e <> <1> THEN
    m := (e - <1>) * y / LN(e);
END_IF;
m := m / (m + <2>);
CL_TANH := SEL(x > <0>, m, -m);
""",
    ),
    "CL_WRAP": Template(
        "the angle in [-pi, pi)",
        ("x",),
        ("angle",),
        """
CL_WRAP := <-3.141592653589793>;
IF ABS(x) < <almost> THEN
    angle := x - <6.283185307179586> * CL_FLOOR((x + <3.141592653589793>) / <6.283185307179586>);
    IF (angle >= <-3.141592653589793>) AND (angle < <3.141592653589793>) THEN
        CL_WRAP := angle;
    END_IF;
END_IF;
""",
    ),
}
FUNCTIONS = {name: template.body for name, template in TEMPLATES.items()}
