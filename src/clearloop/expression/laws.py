"""The laws that simplification applies, written in the formula language itself.

In a law x, y, z stand for any number, c for a constant and p, q for any condition. A law holds to the last
bit: for all finite arguments both sides are the same double, rounding, saturation and division by zero
included (only the sign of a zero may differ, and no operation tells zeros apart). That is why there is no
x/x = 1 here, which fails at 0, and no regrouping of sums and products, which round differently. The right
side is never more complex. `0 < 1` is how "always" is written, `1 < 0` is "never".
"""

Law = tuple[str, str]

ARITHMETIC: tuple[Law, ...] = (
    ("x + 0", "x"),
    ("0 + x", "x"),
    ("x + x", "2*x"),
    ("-x + y", "y - x"),
    ("x - 0", "x"),
    ("0 - x", "-x"),
    ("x - x", "0"),
    ("x*c", "c*x"),
    ("0*x", "0"),
    ("1*x", "x"),
    ("-1*x", "-x"),
    ("-x*y", "-(x*y)"),
    ("x*-y", "-(x*y)"),
    ("0/x", "0"),
    ("x/0", "0"),
    ("x/1", "x"),
    ("x/-1", "-x"),
    ("-x/y", "-(x/y)"),
    ("x/-y", "-(x/y)"),
    ("x**0", "1"),
    ("x**1", "x"),
    ("1**x", "1"),
)

FUNCTIONS: tuple[Law, ...] = (
    ("abs(abs(x))", "abs(x)"),
    ("abs(sqrt(x))", "sqrt(x)"),
    ("abs(exp(x))", "exp(x)"),
    ("abs(x*x)", "x*x"),
    ("abs(x**2)", "x**2"),
    ("sign(sign(x))", "sign(x)"),
    ("sign(-x)", "-sign(x)"),
    ("min(x, x)", "x"),
    ("max(x, x)", "x"),
    ("min(c, x)", "min(x, c)"),
    ("max(c, x)", "max(x, c)"),
    ("min(max(x, y), z)", "clip(x, y, z)"),
    ("min(x, max(y, z))", "clip(y, z, x)"),
    ("clip(x, y, y)", "y"),
    ("clip(x, x, y)", "min(x, y)"),
    ("clip(x, y, x)", "x"),
    ("clip(clip(x, y, z), y, z)", "clip(x, y, z)"),
)

CHOICES: tuple[Law, ...] = (
    ("if(p, x, x)", "x"),
    ("if(0 < 1, x, y)", "x"),
    ("if(1 < 0, x, y)", "y"),
    ("if(p, if(p, x, y), z)", "if(p, x, z)"),
    ("if(p, x, if(p, y, z))", "if(p, x, z)"),
    ("if(x < 0, -x, x)", "abs(x)"),
    ("if(x <= 0, -x, x)", "abs(x)"),
    ("if(x > 0, x, -x)", "abs(x)"),
    ("if(x >= 0, x, -x)", "abs(x)"),
    ("if(x < y, x, y)", "min(x, y)"),
    ("if(x <= y, x, y)", "min(x, y)"),
    ("if(x < y, y, x)", "max(x, y)"),
    ("if(x <= y, y, x)", "max(x, y)"),
    ("if(x > y, x, y)", "max(x, y)"),
    ("if(x >= y, x, y)", "max(x, y)"),
    ("if(x > y, y, x)", "min(x, y)"),
    ("if(x >= y, y, x)", "min(x, y)"),
)

LOGIC: tuple[Law, ...] = (
    ("not not p", "p"),
    ("not (p and q)", "not p or not q"),
    ("not (p or q)", "not p and not q"),
    ("p and p", "p"),
    ("p or p", "p"),
    ("p and 0 < 1", "p"),
    ("0 < 1 and p", "p"),
    ("p and 1 < 0", "1 < 0"),
    ("1 < 0 and p", "1 < 0"),
    ("p or 1 < 0", "p"),
    ("1 < 0 or p", "p"),
    ("p or 0 < 1", "0 < 1"),
    ("0 < 1 or p", "0 < 1"),
    ("x < x", "1 < 0"),
    ("x > x", "1 < 0"),
    ("x != x", "1 < 0"),
    ("x <= x", "0 < 1"),
    ("x >= x", "0 < 1"),
    ("x == x", "0 < 1"),
)

# The laws below hold for every comparison: as it is, its opposite, seen from the other side.
_COMPARISONS = (
    ("<", ">=", ">"),
    ("<=", ">", ">="),
    (">", "<=", "<"),
    (">=", "<", "<="),
    ("==", "!=", "=="),
    ("!=", "==", "!="),
)

COMPARISONS: tuple[Law, ...] = tuple(
    law
    for sign, opposite, mirrored in _COMPARISONS
    for law in (
        (f"not x {sign} y", f"x {opposite} y"),
        (f"x {sign} y and x {opposite} y", "1 < 0"),
        (f"x {sign} y or x {opposite} y", "0 < 1"),
        (f"c {sign} x", f"x {mirrored} c"),
        (f"-x {sign} -y", f"x {mirrored} y"),
        (f"-x {sign} c", f"x {mirrored} -c"),
        (f"x - y {sign} 0", f"x {sign} y"),
    )
)

NUMBER_LAWS = ARITHMETIC + FUNCTIONS + CHOICES
CONDITION_LAWS = LOGIC + COMPARISONS
