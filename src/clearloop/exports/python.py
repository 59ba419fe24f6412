"""The Python export: one file with the functions `reset` and `act` that needs only the standard library."""

import builtins
import keyword
from collections.abc import Iterator

from clearloop.controllers.routine import Input, Routine
from clearloop.exports.comments import WIDTH, about, commented, folded
from clearloop.exports.lowering import lower
from clearloop.exports.printer import PLAIN, SPECIAL, STEP, Dialect, Environment, Names, ascii_name, ring_key
from clearloop.exports.spans import DOUBLE
from clearloop.exports.statements import Syntax, body_lines, layer_functions
from clearloop.exports.targets import Files, Order, Target

# How Python writes operations, helper functions and statements, and which names are reserved.

_RESERVED = (
    frozenset(dir(builtins))
    | frozenset([*keyword.kwlist, *keyword.softkwlist])
    | {"math", "Memory", "reset", "act", "observation", "memory", "setpoint", "aims", "first", "row"}
)


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
    """Limit x to the range from low to high."""
    return min(max(x, low), high)
''',
    "limited": '''def limited(x):
    """Limit an input to +/-1e12."""
    if math.isnan(x):
        raise ValueError("an input is not a number")
    return clip(float(x), -1e12, 1e12)
''',
    "saturated": '''def saturated(x):
    """Limit x to finite numbers: an overflow becomes the largest one."""
    return clip(x, -1.7976931348623157e308, 1.7976931348623157e308)
''',
    "divided": '''def divided(a, b):
    """Return a/b, or 0 if b is 0."""
    return 0.0 if b == 0 else saturated(a/b)
''',
    "power": '''def power(base, exponent):
    """Return base to the power of exponent, or 0 where that is undefined."""
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
    """Return exp(x); an overflow becomes the largest number."""
    try:
        return math.exp(x)
    except OverflowError:
        return saturated(math.inf)
''',
    "angle": '''def angle(y, x):
    """Return the angle of the point (x, y); adding 0 removes the sign of a negative zero."""
    return math.atan2(y + 0.0, x + 0.0)
''',
    "sign": '''def sign(x):
    """Return the sign of x: -1, 0 or 1."""
    return float(x > 0) - float(x < 0)
''',
    "wrap": '''def wrap(x):
    """Return the angle x, brought into [-pi, pi)."""
    rest = x - math.tau*float(math.floor((x + math.pi)/math.tau))
    return rest if -math.pi <= rest < math.pi else -math.pi
''',
    "level": '''def level(x, low, high, count):
    """Round x to the nearest of the levels that divide low to high into count equal steps."""
    k = math.floor((clip(x, low, high) - low)*count/(high - low) + 0.5)
    return min(low + k*(high - low)/count, high)
''',
    "shift": '''def shift(past):
    """Move all past values back by one step."""
    past[1:] = past[:-1]
''',
    "weighted_mean": '''def weighted_mean(fits, outputs):
    """Return the mean of the outputs, weighted by exp(fit), with the largest weight scaled to 1."""
    best = max(fits)
    weights = [math.exp(fit - best) for fit in fits]
    return sum(weight*output for weight, output in zip(weights, outputs))/sum(weights)
''',
}

_LAYER = '''def {name}(weights, bias, x):
    """Compute a layer of a network with the activation function {activation}."""
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
_LAYERS = layer_functions(_LAYER, _ACTIVATIONS)  # in double precision no sum of a network overflows

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=_HELPERS | _LAYERS, truths=("False", "True"))

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
    """Return a routine as a Python module; `about` has the lines of its first comment."""
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
    yield '    """The memory of an episode. Its setpoints may be changed between steps."""\n'
    yield "    def __init__(self):"
    for one in routine.parameters:
        yield f"        self.{names[one.variable]} = {environment.number(one.default or 0.0)}"
    if routine.remembers_the_start:
        yield "        self.started = False"
    for ring in routine.rings:
        yield f"        self.{names[ring_key(ring.name)]} = [0.0]*{ring.depth + 1}  # [k]: value k steps ago"
    if not (routine.parameters or routine.rings):
        yield "        pass"
    yield '\n\ndef reset():\n    """Return the memory of a new episode."""\n    return Memory()\n\n'


def _act(environment: Environment) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield "def act(observation, memory, setpoint=None):"
    yield '    """Compute one control step: the actions for the present observation."""'
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
    """The target `python`: one module."""

    name, title, endings = "python", "Python", (".py",)
    networks = True
    verifier = "clearloop.verification.verdict:run_python"

    def write(self, order: Order) -> Files:
        """Return the module."""
        text = python(lower(order.controller), about(order.controller, order.name, origin=order.origin))
        return {f"{ascii_name(order.name)}.py": text}
