"""C99: a header and a source; no allocation, and no state but a struct of the caller's."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clearloop.controllers.routine import Input, Routine
from clearloop.exports.lowering import lower
from clearloop.exports.printer import (
    PLAIN,
    SPECIAL,
    STEP,
    Dialect,
    Environment,
    Names,
    Syntax,
    about,
    body_lines,
    commented,
    folded,
    harmless,
    layer_function,
    output_words,
    plain_name,
    ring_key,
)
from clearloop.exports.spans import Precision
from clearloop.exports.targets import Files, Order, Target
from clearloop.expression import Variable

# The small functions that C exports bring along, each where it is needed; see `c_words.typed`.

_HELPERS = {
    "clip": """/* x, but at least low and at most high */
static real clip(real x, real low, real high)
{
    return fmin(fmax(x, low), high);
}
""",
    "limited": """/* an input as it is read: at most 1e12 */
static real limited(real x)
{
    return clip(x, <-1e12>, <1e12>);
}
""",
    "saturated": """/* the largest number in place of an infinite one */
static real saturated(real x)
{
    return clip(x, <-1.7976931348623157e308>, <1.7976931348623157e308>);
}
""",
    "divided": """/* a/b; 0 where b is 0 */
static real divided(real a, real b)
{
    return b == <0> ? <0> : saturated(a/b);
}
""",
    "power": """/* base to the exponent; 0 where there is no such number */
static real power(real base, real exponent)
{
    if (base == <0>) { return exponent == <0> ? <1> : <0>; }
    if (base < <0> && exponent != floor(exponent)) { return <0>; }
    return saturated(pow(base, exponent));
}
""",
    "angle": """/* of the point (x, y); zeros have no sign here */
static real angle(real y, real x)
{
    return atan2(y + <0>, x + <0>);
}
""",
    "sign": """/* -1, 0 or 1 */
static real sign(real x)
{
    return x > <0> ? <1> : x < <0> ? <-1> : <0>;
}
""",
    "wrap": """/* the angle in [-pi, pi) */
static real wrap(real x)
{
    const real pi = <3.141592653589793>, turn = <6.283185307179586>;
    const real rest = x - turn*floor((x + pi)/turn);
    return rest >= -pi && rest < pi ? rest : -pi;
}
""",
    "level": """/* the nearest of the levels that cut low to high into count equal steps */
static real level(real x, real low, real high, real count)
{
    const real k = floor((clip(x, low, high) - low)*count/(high - low) + <0.5>);
    return fmin(low + k*(high - low)/count, high);
}
""",
    "shift": """/* all values become one step older */
static void shift(real *past, int count)
{
    for (int k = count - 1; k > 0; k--) { past[k] = past[k - 1]; }
}
""",
    "fill": """static void fill(real *past, int count, real x)
{
    for (int k = 0; k < count; k++) { past[k] = x; }
}
""",
    "weighted_mean": """/* of the outputs, weighted by e to the fits, so that the largest weight is 1 */
static real weighted_mean(const real *fits, const real *outputs, int count)
{
    real best = fits[0], sum = <0>, weights = <0>;
    for (int k = 1; k < count; k++) { best = fmax(best, fits[k]); }
    for (int k = 0; k < count; k++) {
        const real weight = exp(fits[k] - best);
        sum += weight*outputs[k];
        weights += weight;
    }
    return sum/weights;
}
""",
}

_LAYER = """/* a layer of a network: {words} */
static void {name}(const real *weights, const real *bias, const real *x, int inputs, real *y, int outputs)
{{
    for (int i = 0; i < outputs; i++) {{
        real sum = <0>;
        for (int j = 0; j < inputs; j++) {{ {add}; }}
        sum = {bias};
        y[i] = {value};
    }}
}}
"""
_ACTIVATIONS = {
    "identity": "sum",
    "relu": "fmax(sum, <0>)",
    "tanh": "tanh(sum)",
    "sigmoid": "<0.5> + <0.5>*tanh(<0.5>*sum)",
}


def _layer_helper(activation: str, over: bool) -> str:
    add, bias = "sum += weights[i*inputs + j]*x[j]", "sum + bias[i]"
    if over:
        add = "sum = saturated(sum + saturated(weights[i*inputs + j]*x[j]))"
        bias = f"saturated({bias})"
    return _LAYER.format(
        name=layer_function(activation, over),
        words=activation,
        add=add,
        bias=bias,
        value=_ACTIVATIONS[activation],
    )


HELPERS = _HELPERS | {
    layer_function(activation, over): _layer_helper(activation, over)
    for activation in _ACTIVATIONS
    for over in (False, True)
}


# The words of C: operations, the small functions that total ones need, and names that are taken.
#
# Written for `real`, with functions of math.h by their names for double; `typed` makes double or float of it.

_MATH = "fabs fmin fmax sqrt exp log sin cos tan atan2 tanh floor pow"

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof real main errno NULL NAN INFINITY HUGE_VAL bool true false class new
delete this template ceil round trunc rint fmod exp2 log2 log10 log1p expm1 cosh sinh acosh asinh
atanh acos asin atan cbrt erf erfc hypot ldexp frexp modf scalb logb gamma lgamma tgamma drem
remainder fdim fma j0 j1 jn y0 y1 yn signgam index isnan isinf isfinite signbit div abs labs
"""

_RESERVED = frozenset(_KEYWORDS.split()) | {
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

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=HELPERS, number=_number)

_SYNTAX = Syntax(
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


ADVICE = (
    "Compile with -ffp-contract=off (a fused multiply-add rounds differently), and not with -ffast-math.",
    "An input beyond 1e12 counts as 1e12. Catch what is not a number (NaN) before.",
)


@dataclass(frozen=True)
class TranslationUnit:
    """The parts of a C export, so that several can stand in one file."""

    prefix: str
    types: str
    functions: str
    precision: Precision
    members: Mapping[Variable, str]
    """The names of inputs, setpoints and actions in the structs."""

    @property
    def prototypes(self) -> str:
        name = self.prefix
        return (
            "/* Before the first step, and whenever a new episode begins. */\n"
            f"void {name}_init({name}_memory *memory);\n\n"
            "/* One step: from what is observed now to what is to be done. */\n"
            f"{step_head(name)};\n"
        )

    def header(self, about: list[str]) -> str:
        guard = f"{self.prefix.upper()}_H"
        comment = "\n".join(commented(about, " *"))
        head = f"/*\n{comment}\n */\n#ifndef {guard}\n#define {guard}\n\n"
        return f"{head}{self.types}\n{self.prototypes}\n#endif\n"

    def source(self, about: list[str]) -> str:
        comment = "\n".join(commented([*about, *ADVICE], " *"))
        head = f'/*\n{comment}\n */\n#include "{self.prefix}.h"\n\n#include <math.h>\n\n'
        return head + helper_text([self]) + self.functions


def step_head(name: str) -> str:
    return folded(
        f"void {name}_step({name}_memory *memory, const {name}_input *input, {name}_output *output)", ""
    )


def helper_text(units: list[TranslationUnit]) -> str:
    """The small functions that some units need, which have the same precision."""
    names = _DIALECT.helpers_in("\n".join(unit.functions for unit in units))
    return "".join(f"{typed(_DIALECT.helpers[name], units[0].precision)}\n" for name in names)


def c_unit(routine: Routine, name: str, precision: Precision) -> TranslationUnit:
    prefix = Names(_RESERVED).give("", name)
    names = Names({*_RESERVED, *_DIALECT.helpers, "memory", "input", "output", "first", "k", "row"})
    environment = Environment(
        routine=routine, dialect=_DIALECT, precision=precision, names=names, ring="memory->{}[{}]"
    )
    step = list(_step(environment, prefix))
    tables = [folded(table, STEP) for table in environment.tables]
    step[2:2] = tables
    functions = "\n".join([*_init(environment, prefix), "", *step, ""])
    types = "\n".join(_types(environment, prefix))
    things = [*(one.variable for one in routine.inputs), *(one.action for one in routine.outputs)]
    members = {thing: names[thing] for thing in things}
    return TranslationUnit(prefix, types, typed(functions, precision), precision, members)


def _types(environment: Environment, prefix: str) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    real = typed("real", environment.precision)
    memory = [
        (f"{real} {names[one.variable]}", _words(names, one, "setpoint; may be changed between steps"))
        for one in routine.parameters
    ]
    if routine.remembers_the_start:
        memory.append(("int started", ""))
    memory += [
        (f"{real} {names[ring_key(ring.name)]}[{ring.depth + 1}]", "[k]: k steps ago")
        for ring in routine.rings
    ]
    inputs = [(f"{real} {names[one.variable]}", _words(names, one)) for one in routine.observed]
    outputs = [(f"{real} {names[one.action]}", output_words(one)) for one in routine.outputs]
    yield from _struct(f"{prefix}_input", inputs)
    yield from _struct(f"{prefix}_memory", memory)
    yield from _struct(f"{prefix}_output", outputs)


def _words(names: Names, one: Input, words: str = "") -> str:
    """What it is called elsewhere, if not the same; its unit."""
    spelled = "" if names[one.variable] == plain_name(one.variable) else str(one.variable)
    return ", ".join(filter(None, (spelled, one.unit, words)))


def _struct(name: str, members: list[tuple[str, str]]) -> Iterator[str]:
    yield "typedef struct {"
    for member, words in members or [("int unused", "C wants a member")]:
        yield f"{STEP}{member};" + (f" /* {harmless(words)} */" if words else "")
    yield f"}} {name};\n"


def _init(environment: Environment, prefix: str) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield f"void {prefix}_init({prefix}_memory *memory)\n{{"
    for one in routine.parameters:
        yield f"{STEP}memory->{names[one.variable]} = {environment.number(one.default or 0.0)};"
    if routine.remembers_the_start:
        yield f"{STEP}memory->started = 0;"
    for ring in routine.rings:
        past, zero = names[ring_key(ring.name)], environment.number(0.0)
        yield f"{STEP}fill(memory->{past}, {ring.depth + 1}, {zero});"
    if not (routine.parameters or routine.rings):
        yield f"{STEP}memory->unused = 0;"
    yield "}"


def _step(environment: Environment, prefix: str) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    yield step_head(prefix)
    yield "{"
    for one in routine.inputs:
        name = names[one.variable]
        yield f"{STEP}const real {name} = limited({'input' if one.default is None else 'memory'}->{name});"
    if not routine.observed:
        yield f"{STEP}(void)input;"
    if not (routine.parameters or routine.rings):
        yield f"{STEP}(void)memory;"
    if routine.remembers_the_start:
        yield f"{STEP}const int first = !memory->started;\n{STEP}memory->started = 1;"
    for ring in routine.rings:
        yield f"{STEP}shift(memory->{names[ring_key(ring.name)]}, {ring.depth + 1});"
    for line in body_lines(environment, _SYNTAX):
        yield folded(line, STEP)
    yield "}"


class C(Target):
    name, title, endings = "c", "C", (".c", ".h")
    networks, single = True, True
    verifier = "clearloop.verification.verdict:run_c"

    def write(self, order: Order) -> Files:
        unit = c_unit(lower(order.controller), order.name, order.precision)
        words = about(order.controller, order.name)
        return {f"{unit.prefix}.c": unit.source(words), f"{unit.prefix}.h": unit.header(words)}
