"""Values, names and formulas that are hard on a program that reads them."""

import random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, -0.0, 1, -1, 0.1, 1e-9, -1e-300, 5e-324, 1e9, 1e16, 1e300, -1.7e308, float("nan"), float("inf"),
    float("-inf"), 2**31, 2**53 + 1, 2**63, 2**64, 10**30, -(10**400), True, False,
)  # fmt: skip
TEXTS: tuple[str, ...] = (
    "", " ", "x", "θ", "日本", "é" * 40, "a" * 5_000, "a\nb", "a\tb", "a\0b", "\x1b[31mred", "\x9b2J",
    "\u202eabc", "\u2028", "\ufeffx", "\ud800", "nan", "inf", "-Infinity", "1e999", "0x10", "1,5", "1_000",
    "٣", "True", "null", "__class__", "{0}", "%s", "*/", '"""', "(*", "*)", "'", '"', "<script>", "]]>",
    "$", "#", "\\", "\\u", "=1+1", "x/y", "con", ".", "..", "-", "--json", "~", "theta", "force",
    "rho.error", "rho.setpoint", "theta[t-1]", "2024-01-01", "2024-13-45T99:99", "12:00",
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "**", "<", ">", "<=", ">=", "==", "!=", " and ", " or ", "%", "//", "^")
FUNCTIONS = {
    "min": 2, "max": 2, "abs": 1, "sqrt": 1, "exp": 1, "log": 1, "sin": 1, "cos": 1, "tan": 1, "atan2": 2,
    "tanh": 1, "sign": 1, "clip": 3, "wrap": 1, "if": 3, "not": 1, "eval": 1,
}  # fmt: skip
CONSTANTS = (
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "1e-300",
    "1e300",
    "1e308",
    "5e-324",
    "3.141592653589793",
    "1e999",
    "007",
)


def value(rng: random.Random) -> Any:
    """Any value that JSON or TOML can hold, and some that they cannot."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(NUMBERS)
    if kind < 0.8:
        return rng.choice(TEXTS)
    if kind < 0.85:
        return None
    if kind < 0.9:
        return nested(rng.choice((2, 30, 120)), rng.random() < 0.5)
    return rng.choice(([], {}, [[]], [0, 1], [1, 0], ["x"], {"x": 1}, [None], [1.5] * 300, {"": ""}))


def nested(depth: int, lists: bool) -> Any:
    inner: Any = 1
    for _ in range(depth):
        inner = [inner] if lists else {"a": inner}
    return inner


def number(rng: random.Random, near: float) -> Any:
    """A number that may stand where another one stood."""
    if rng.random() < 0.25:
        return rng.choice(NUMBERS)
    return rng.choice((near * 1e6, near * 1e-6, -near, near + 1, int(near) * 3, near * rng.uniform(0.5, 2)))


def formula(rng: random.Random, names: list[str], depth: int = 4) -> str:
    """A formula that is often right: a condition may stand for a number, and a lag may be too far."""
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return _leaf(rng, names)
    if kind < 0.6:
        operation = rng.choice(BINARY[:4] if rng.random() < 0.8 else BINARY)
        left, right = (formula(rng, names, depth - 1) for _ in range(2))
        return f"({left}{operation}{right})" if rng.random() < 0.7 else f"{left}{operation}{right}"
    if kind < 0.7:
        return f"-{formula(rng, names, depth - 1)}"
    if kind < 0.8:
        first, second, third, fourth = (formula(rng, names, depth - 1) for _ in range(4))
        return f"if({first}{rng.choice(BINARY[5:9])}{second}, {third}, {fourth})"
    name, count = rng.choice(list(FUNCTIONS.items())[: -3 if rng.random() < 0.9 else None])
    count = count if rng.random() < 0.97 else rng.randrange(5)
    return f"{name}({', '.join(formula(rng, names, depth - 1) for _ in range(count))})"


def _leaf(rng: random.Random, names: list[str]) -> str:
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(CONSTANTS[:5] if rng.random() < 0.8 else CONSTANTS)
    if kind < 0.4:
        return f"{rng.gauss(0, 10 ** rng.randint(-3, 6)):.{rng.randint(1, 17)}g}"
    name = rng.choice(names)
    if kind < 0.85:
        return name
    return (
        f"{name}[t-{rng.choice((0, 1, 1, 2, 30, 999))}]"
        if kind < 0.95
        else f"{name}.{rng.choice(('error', 'setpoint', 'x'))}"
    )


def damaged_text(rng: random.Random, text: str) -> str:
    """A text with one change: characters removed, repeated, replaced or moved."""
    if not text:
        return rng.choice(TEXTS)
    start = rng.randrange(len(text))
    stop = min(len(text), start + rng.choice((1, 1, 2, 8)))
    piece = text[start:stop]
    return (
        text[:start]
        + rng.choice(("", piece * 2, piece * 300, rng.choice(TEXTS), rng.choice("+-*/()[],.t0 ")))
        + text[stop:]
    )
