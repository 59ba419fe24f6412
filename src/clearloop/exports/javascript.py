"""The JavaScript export: an ES module with the functions `reset` and `act`."""

import json
from collections.abc import Iterator

from clearloop.controllers.routine import Input, Routine
from clearloop.exports.comments import about, commented, folded
from clearloop.exports.lowering import lower
from clearloop.exports.printer import PLAIN, SPECIAL, Dialect, Environment, Names, ascii_name, ring_key
from clearloop.exports.spans import DOUBLE
from clearloop.exports.statements import Syntax, body_lines, layer_functions
from clearloop.exports.targets import Files, Order, Target

# How JavaScript writes operations, helper functions and statements, and which names are reserved.

_RESERVED = frozenset(
    """
abstract arguments await boolean break byte case catch char class const continue debugger default
delete do double else enum eval export extends false final finally float for function get goto if
implements import in instanceof int interface let long native new null of package private protected
public return set short static super switch synchronized this throw throws transient true try typeof
undefined var void volatile while with yield async Array Object Math Number NaN Infinity isNaN
isFinite globalThis prototype constructor observation memory setpoint first k row reset act
""".split()  # noqa: SIM905
)


_MATHS = ("abs", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh")
_PLAIN = PLAIN | {
    **{name: f"Math.{name}({{0}})" for name in _MATHS},
    "min": "Math.min({0}, {1})",
    "max": "Math.max({0}, {1})",
    "pow": "Math.pow({0}, {1})",
    "atan2": "Math.atan2({0}, {1})",
    "eq": "{0} === {1}",
    "ne": "{0} !== {1}",
}

_SPECIAL = SPECIAL | {
    "sqrt": "Math.sqrt(Math.max({0}, 0))",
    "log": "Math.log(Math.max({0}, 1e-30))",
}

_HELPERS = {
    "clip": """// Limits x to the range from low to high.
function clip(x, low, high) {
  return Math.min(Math.max(x, low), high);
}
""",
    "limited": """// Limits an input to +/-1e12.
function limited(x) {
  if (Number.isNaN(Number(x))) { throw new TypeError("an input is not a number"); }
  return clip(x, -1e12, 1e12);
}
""",
    "saturated": """// Limits x to finite numbers: an overflow becomes the largest one.
function saturated(x) {
  return clip(x, -Number.MAX_VALUE, Number.MAX_VALUE);
}
""",
    "divided": """// a/b, or 0 if b is 0.
function divided(a, b) {
  return b === 0 ? 0 : saturated(a/b);
}
""",
    "power": """// base to the power of exponent, or 0 where that is undefined.
function power(base, exponent) {
  if (base === 0) { return exponent === 0 ? 1 : 0; }
  if (base < 0 && exponent !== Math.floor(exponent)) { return 0; }
  return saturated(Math.pow(base, exponent));
}
""",
    "angle": """// The angle of the point (x, y). Adding 0 removes the sign of a negative zero.
function angle(y, x) {
  return Math.atan2(y + 0, x + 0);
}
""",
    "sign": """// The sign of x: -1, 0 or 1.
function sign(x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}
""",
    "wrap": """// The angle x, brought into [-pi, pi).
function wrap(x) {
  const rest = x - 2*Math.PI*Math.floor((x + Math.PI)/(2*Math.PI));
  return rest >= -Math.PI && rest < Math.PI ? rest : -Math.PI;
}
""",
    "level": """// Rounds x to the nearest of the levels that divide low to high into count equal steps.
function level(x, low, high, count) {
  const k = Math.floor((clip(x, low, high) - low)*count/(high - low) + 0.5);
  return Math.min(low + k*(high - low)/count, high);
}
""",
    "weighted_mean": """// The mean of the outputs, weighted by exp(fit), with the largest weight scaled to 1.
function weighted_mean(fits, outputs) {
  let best = fits[0], sum = 0, weights = 0;
  for (const fit of fits) { best = Math.max(best, fit); }
  for (let k = 0; k < fits.length; k++) {
    const weight = Math.exp(fits[k] - best);
    sum += weight*outputs[k];
    weights += weight;
  }
  return sum/weights;
}
""",
}

_LAYER = """// A layer of a network with the activation function {activation}.
function {name}(weights, bias, x) {{
  return bias.map((offset, i) => {{
    let sum = 0;
    for (let j = 0; j < x.length; j++) {{ sum += weights[i*x.length + j]*x[j]; }}
    sum = sum + offset;
    return {value};
  }});
}}
"""
_ACTIVATIONS = {
    "identity": "sum",
    "relu": "Math.max(sum, 0)",
    "tanh": "Math.tanh(sum)",
    "sigmoid": "0.5 + 0.5*Math.tanh(0.5*sum)",
}
_LAYERS = layer_functions(_LAYER, _ACTIVATIONS)  # in double precision no sum of a network overflows

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=_HELPERS | _LAYERS)

_SYNTAX = Syntax(
    let="const {target} = {value};",
    store="memory.{past}[0] = {value};",
    repeat="if (first) {{ memory.{past}.fill(memory.{past}[0]); }}",
    sum="let {target} = 0;\nfor (let k = 0; k < {count}; k++) {{ {target} += memory.{past}[k]; }}",
    fill="const {target} = [{values}];",
    table="const {name} = [{values}];",
    mean="const {target} = weighted_mean({source}, {table});",
    layer="const {target} = {function}({weights}, {bias}, {source});",
    best_open="let {value} = 0;\nlet {chosen} = 0;\nfor (let row = 0; row < {count}; row++) {{",
    best_input="{source}[{element}] = {table}[{row_index}];",
    best_close="    if (row === 0 || {last}[0] > {value}) {{ {value} = {last}[0]; {chosen} = row; }}\n}}",
    best_choice="const {target} = {table}[{chosen_index}];",
    output="let {name} = {value};",
    clip="{name} = clip({name}, {low}, {high});",
    level="{name} = level({name}, {low}, {high}, {parts});",
    answer="",
)


_STEP = "  "


def javascript(routine: Routine, about: list[str]) -> str:
    """Return a routine as an ES module; `about` has the lines of its first comment."""
    names = Names({*_RESERVED, *_DIALECT.helpers})
    environment = Environment(
        routine=routine, dialect=_DIALECT, precision=DOUBLE, names=names, ring="memory.{}[{}]"
    )
    act = list(_act(environment))
    tables = [folded(table, "") for table in environment.tables]
    functions = "\n".join([*tables, *[""][: len(tables)], *_reset(environment), "", *act, ""])
    helpers = "".join(f"{_DIALECT.helpers[name]}\n" for name in _DIALECT.helpers_in(functions))
    comment = "\n".join(commented(about, "//"))
    return f"{comment}\n\n{helpers}{functions}"


def _reset(environment: Environment) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield "// Returns the memory of a new episode. Its setpoints may be changed between steps."
    yield "export function reset() {\n  return {"
    for one in routine.parameters:
        yield f"    {names[one.variable]}: {environment.number(one.default or 0.0)},"
    if routine.remembers_the_start:
        yield "    started: false,"
    for ring in routine.rings:
        past = names[ring_key(ring.name)]
        yield f"    {past}: new Array({ring.depth + 1}).fill(0), // [k]: value k steps ago"
    yield "  };\n}"


def _act(environment: Environment) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield "// Computes one control step: the actions for the present observation."
    yield "export function act(observation, memory, setpoint = {}) {"
    for one in routine.inputs:
        yield f"{_STEP}const {names[one.variable]} = limited({_source(one, names)});"
    if routine.remembers_the_start:
        yield f"{_STEP}const first = !memory.started;\n{_STEP}memory.started = true;"
    for ring in routine.rings:
        yield f"{_STEP}memory.{names[ring_key(ring.name)]}.copyWithin(1, 0);"
    for line in body_lines(environment, _SYNTAX):
        yield folded(line, _STEP)
    answer = ", ".join(f"{_key(one.action.name)}: {names[one.action]}" for one in routine.outputs)
    yield f"{_STEP}return {{ {answer} }};\n}}"


def _key(name: str) -> str:
    """Return a key of an object literal; brackets keep `__proto__` from setting the prototype."""
    return "[" * (name == "__proto__") + json.dumps(name) + "]" * (name == "__proto__")


def _source(one: Input, names: Names) -> str:
    key = json.dumps(one.variable.name)
    if one.variable.part == "value":
        return f"observation[{key}]"
    known = "" if one.default is None else f" ?? memory.{names[one.variable]}"
    return f"setpoint[{key}]{known}"


class JavaScript(Target):
    """The target `javascript`: one ES module."""

    name, title, endings = "javascript", "JavaScript", (".mjs",)
    networks = True
    verifier = "clearloop.verification.verdict:run_javascript"

    def write(self, order: Order) -> Files:
        """Return the module."""
        text = javascript(lower(order.controller), about(order.controller, order.name, origin=order.origin))
        return {f"{ascii_name(order.name)}.mjs": text}
