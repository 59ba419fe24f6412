"""Python: one file that needs nothing but the standard library, with the functions `reset` and `act`."""

import builtins
import keyword
from collections.abc import Iterator

from clearloop.controllers.routine import Input, Routine
from clearloop.exports.lowering import lower
from clearloop.exports.printer import (
    PLAIN,
    SPECIAL,
    STEP,
    WIDTH,
    Dialect,
    Environment,
    Names,
    Syntax,
    about,
    ascii_name,
    body_lines,
    commented,
    folded,
    layer_functions,
    ring_key,
)
from clearloop.exports.spans import DOUBLE, Precision
from clearloop.exports.targets import Files, Order, Target

# The words of Python: operations, the small functions that total ones need, and names that are taken.

_RESERVED = (
    frozenset(dir(builtins))
    | frozenset([*keyword.kwlist, *keyword.softkwlist])
    | {"math", "Memory", "reset", "act", "observation", "memory", "setpoint", "aims", "first", "row"}
)


def _number(value: float, precision: Precision) -> str:
    return precision.text(value)


_MATHS = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh")
_PLAIN = PLAIN | {
    **{name: f"math.{name}({{0}})" for name in _MATHS},
    "min": "min({0}, {1})",
    "max": "max({0}, {1})",
    "abs": "abs({0})",
    "pow": "math.pow({0}, {1})",
    "atan2": "math.atan2({0}, {1})",
    "and": "{0} and {1}",
    "or": "{0} or {1}",
    "not": "(not ({0}))",
    "if": "({1} if {0} else {2})",
}

_SPECIAL = SPECIAL | {
    "sqrt": "math.sqrt(max({0}, 0.0))",
    "exp": "exponential({0})",
    "log": "math.log(max({0}, 1e-30))",
}

_HELPERS = {
    "clip": '''def clip(x, low, high):
    """x, but at least low and at most high"""
    return min(max(x, low), high)
''',
    "limited": '''def limited(x):
    """An input as it is read: at most 1e12."""
    if math.isnan(x):
        raise ValueError("an input is not a number")
    return clip(float(x), -1e12, 1e12)
''',
    "saturated": '''def saturated(x):
    """The largest number in place of an infinite one."""
    return clip(x, -1.7976931348623157e308, 1.7976931348623157e308)
''',
    "divided": '''def divided(a, b):
    """a/b; 0 where b is 0"""
    return 0.0 if b == 0 else saturated(a/b)
''',
    "power": '''def power(base, exponent):
    """Base to the exponent; 0 where there is no such number."""
    if base == 0:
        return 1.0 if exponent == 0 else 0.0
    if base < 0 and exponent != math.floor(exponent):
        return 0.0
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = math.fmod(exponent, 2) != 0
        return saturated(-math.inf if base < 0 and odd else math.inf)
''',
    "exponential": '''def exponential(x):
    """The largest number in place of an infinite one."""
    try:
        return math.exp(x)
    except OverflowError:
        return saturated(math.inf)
''',
    "angle": '''def angle(y, x):
    """Of the point (x, y); zeros have no sign here."""
    return math.atan2(y + 0.0, x + 0.0)
''',
    "sign": '''def sign(x):
    """-1, 0 or 1"""
    return float(x > 0) - float(x < 0)
''',
    "wrap": '''def wrap(x):
    """The angle in [-pi, pi)."""
    rest = x - math.tau*float(math.floor((x + math.pi)/math.tau))
    return rest if -math.pi <= rest < math.pi else -math.pi
''',
    "level": '''def level(x, low, high, count):
    """The nearest of the levels that cut low to high into count equal steps."""
    k = math.floor((clip(x, low, high) - low)*count/(high - low) + 0.5)
    return min(low + k*(high - low)/count, high)
''',
    "shift": '''def shift(past):
    """All values become one step older."""
    past[1:] = past[:-1]
''',
    "weighted_mean": '''def weighted_mean(fits, outputs):
    """Of the outputs, weighted by e to the fits, so that the largest weight is 1."""
    best = max(fits)
    weights = [math.exp(fit - best) for fit in fits]
    return sum(weight*output for weight, output in zip(weights, outputs))/sum(weights)
''',
}

_LAYER = '''def {name}(weights, bias, x):
    """A layer of a network: {activation}."""
    y = []
    for i in range(len(bias)):
        total = 0.0
        for j in range(len(x)):
            total += weights[i*len(x) + j]*x[j]
        total += bias[i]
        y.append({value})
    return y
'''
_ACTIVATIONS = {
    "identity": "total",
    "relu": "max(total, 0.0)",
    "tanh": "math.tanh(total)",
    "sigmoid": "0.5 + 0.5*math.tanh(0.5*total)",
}
_LAYERS = layer_functions(_LAYER, _ACTIVATIONS)  # in double precision no sum of a network is too large

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=_HELPERS | _LAYERS, number=_number)

_SYNTAX = Syntax(
    let="{target} = {value}",
    store="memory.{past}[0] = {value}",
    repeat="if first:\n    memory.{past}[:] = [memory.{past}[0]]*{count}",
    sum="{target} = 0.0\nfor value in memory.{past}[:{count}]:\n    {target} += value",
    fill="{target} = [{values}]",
    table="{name} = ({values},)",
    mean="{target} = weighted_mean({source}, {table})",
    layer="{target} = {function}({weights}, {bias}, {source})",
    best_open="{value} = 0.0\n{chosen} = 0\nfor row in range({count}):",
    best_input="{source}[{element}] = {table}[{row_index}]",
    best_close="    if row == 0 or {last}[0] > {value}:\n        {value}, {chosen} = {last}[0], row",
    best_choice="{target} = {table}[{chosen_index}]",
    output="{name} = {value}",
    clip="{name} = clip({name}, {low}, {high})",
    level="{name} = level({name}, {low}, {high}, {parts})",
    answer="",
)


def python(routine: Routine, about: list[str]) -> str:
    names = Names({*_RESERVED, *_DIALECT.helpers, "value"})
    environment = Environment(
        routine=routine, dialect=_DIALECT, precision=DOUBLE, names=names, ring="memory.{}[{}]"
    )
    act = list(_act(environment))
    tables = [_folded(table, "") for table in environment.tables]
    functions = "\n".join([*tables, *["\n"][: len(tables)], *_memory(environment), *act, ""])
    helpers = "".join(f"{_DIALECT.helpers[name]}\n\n" for name in _DIALECT.helpers_in(functions))
    comment = "\n".join(commented(about, "#"))
    return f"{comment}\n\nimport math\n\n\n{helpers}{functions}"


def _memory(environment: Environment) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield "class Memory:"
    yield '    """What is remembered of an episode; setpoints may be changed between steps."""\n'
    yield "    def __init__(self):"
    for one in routine.parameters:
        yield f"        self.{names[one.variable]} = {environment.number(one.default or 0.0)}"
    if routine.remembers_the_start:
        yield "        self.started = False"
    for ring in routine.rings:
        yield f"        self.{names[ring_key(ring.name)]} = [0.0]*{ring.depth + 1}  # [k]: k steps ago"
    if not (routine.parameters or routine.rings):
        yield "        pass"
    yield '\n\ndef reset():\n    """A memory for a new episode."""\n    return Memory()\n\n'


def _act(environment: Environment) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield "def act(observation, memory, setpoint=None):"
    yield '    """One step: from what is observed now to what is to be done."""'
    if any(one.variable.part == "setpoint" for one in routine.inputs):
        yield "    aims = setpoint or {}"
    for one in routine.inputs:
        yield f"{STEP}{names[one.variable]} = limited({_source(one, names)})"
    if routine.remembers_the_start:
        yield f"{STEP}first = not memory.started\n{STEP}memory.started = True"
    for ring in routine.rings:
        yield f"{STEP}shift(memory.{names[ring_key(ring.name)]})"
    for line in body_lines(environment, _SYNTAX):
        yield _folded(line, STEP)
    answer = ", ".join(f"{one.action.name!a}: {names[one.action]}" for one in routine.outputs)
    yield f"{STEP}return {{{answer}}}"


def _folded(line: str, indent: str) -> str:
    """A long line is put into brackets, in which it may be broken."""
    target, equals, value = line.partition(" = ")
    if len(indent) + len(line) <= WIDTH or not equals:
        return indent + line
    inner = indent + " " * (len(line) - len(line.lstrip()))
    return f"{indent}{target} = (\n{folded(value, inner + STEP)}\n{inner})"


def _source(one: Input, names: Names) -> str:
    key = ascii(one.variable.name)
    if one.variable.part == "value":
        return f"observation[{key}]"
    if one.default is None:
        return f"aims[{key}]"
    return f"aims.get({key}, memory.{names[one.variable]})"


class Python(Target):
    name, title, endings = "python", "Python", (".py",)
    networks = True
    verifier = "clearloop.verification.verdict:run_python"

    def write(self, order: Order) -> Files:
        text = python(lower(order.controller), about(order.controller, order.name))
        return {f"{ascii_name(order.name)}.py": text}
