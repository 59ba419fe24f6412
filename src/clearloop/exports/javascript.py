"""JavaScript: an ES module with the functions `reset` and `act`."""

import json
from collections.abc import Iterator

from clearloop.controllers.routine import Input, Routine
from clearloop.exports.lowering import lower
from clearloop.exports.printer import (
    PLAIN,
    SPECIAL,
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

# The words of JavaScript: operations, the small functions that total ones need, and names that are taken.

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


def _number(value: float, precision: Precision) -> str:
    return precision.text(value)


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
    "clip": """// x, but at least low and at most high
function clip(x, low, high) {
  return Math.min(Math.max(x, low), high);
}
""",
    "limited": """// an input as it is read: at most 1e12
function limited(x) {
  if (Number.isNaN(Number(x))) { throw new TypeError("an input is not a number"); }
  return clip(x, -1e12, 1e12);
}
""",
    "saturated": """// the largest number in place of an infinite one
function saturated(x) {
  return clip(x, -Number.MAX_VALUE, Number.MAX_VALUE);
}
""",
    "divided": """// a/b; 0 where b is 0
function divided(a, b) {
  return b === 0 ? 0 : saturated(a/b);
}
""",
    "power": """// base to the exponent; 0 where there is no such number
function power(base, exponent) {
  if (base === 0) { return exponent === 0 ? 1 : 0; }
  if (base < 0 && exponent !== Math.floor(exponent)) { return 0; }
  return saturated(Math.pow(base, exponent));
}
""",
    "angle": """// of the point (x, y); zeros have no sign here
function angle(y, x) {
  return Math.atan2(y + 0, x + 0);
}
""",
    "sign": """// -1, 0 or 1
function sign(x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}
""",
    "wrap": """// the angle in [-pi, pi)
function wrap(x) {
  const rest = x - 2*Math.PI*Math.floor((x + Math.PI)/(2*Math.PI));
  return rest >= -Math.PI && rest < Math.PI ? rest : -Math.PI;
}
""",
    "level": """// the nearest of the levels that cut low to high into count equal steps
function level(x, low, high, count) {
  const k = Math.floor((clip(x, low, high) - low)*count/(high - low) + 0.5);
  return Math.min(low + k*(high - low)/count, high);
}
""",
    "weighted_mean": """// of the outputs, weighted by e to the fits, so that the largest weight is 1
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

_LAYER = """// a layer of a network: {activation}
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
_LAYERS = layer_functions(_LAYER, _ACTIVATIONS)  # in double precision no sum of a network is too large

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=_HELPERS | _LAYERS, number=_number)

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
    yield "// A memory for a new episode; its setpoints may be changed between steps."
    yield "export function reset() {\n  return {"
    for one in routine.parameters:
        yield f"    {names[one.variable]}: {environment.number(one.default or 0.0)},"
    if routine.remembers_the_start:
        yield "    started: false,"
    for ring in routine.rings:
        yield f"    {names[ring_key(ring.name)]}: new Array({ring.depth + 1}).fill(0), // [k]: k steps ago"
    yield "  };\n}"


def _act(environment: Environment) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield "// One step: from what is observed now to what is to be done."
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
    """In brackets if it means something to JavaScript, which would not make it a key."""
    return "[" * (name == "__proto__") + json.dumps(name) + "]" * (name == "__proto__")


def _source(one: Input, names: Names) -> str:
    key = json.dumps(one.variable.name)
    if one.variable.part == "value":
        return f"observation[{key}]"
    known = "" if one.default is None else f" ?? memory.{names[one.variable]}"
    return f"setpoint[{key}]{known}"


class JavaScript(Target):
    name, title, endings = "javascript", "JavaScript", (".mjs",)
    networks = True
    verifier = "clearloop.verification.verdict:run_javascript"

    def write(self, order: Order) -> Files:
        text = javascript(lower(order.controller), about(order.controller, order.name))
        return {f"{ascii_name(order.name)}.mjs": text}
