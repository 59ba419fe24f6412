"""The C export: a C99 header and source without allocation, whose only state is a struct of the caller."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clearloop.controllers.routine import Input, Routine
from clearloop.exports.comments import about, commented, folded, harmless
from clearloop.exports.lowering import lower
from clearloop.exports.printer import (
    PLAIN,
    SPECIAL,
    STEP,
    Dialect,
    Environment,
    Names,
    Syntax,
    body_lines,
    layer_function,
    output_words,
    plain_name,
    ring_key,
)
from clearloop.exports.spans import Precision
from clearloop.exports.targets import Files, Order, Target
from clearloop.expression import Variable

# The small functions that a C export contains if it calls them. They are written for the type `real`, with
# numbers as `<0.5>` and functions of math.h by their names for double; `typed` makes double or float of it.

_HELPERS = {
    "clip": """/* Limits x to the range from low to high. */
static real clip(real x, real low, real high)
{
    return fmin(fmax(x, low), high);
}
""",
    "limited": """/* Limits an input to +/-1e12. */
static real limited(real x)
{
    return clip(x, <-1e12>, <1e12>);
}
""",
    "saturated": """/* Limits x to finite numbers: an overflow becomes the largest one. */
static real saturated(real x)
{
    return clip(x, <-1.7976931348623157e308>, <1.7976931348623157e308>);
}
""",
    "divided": """/* a/b, or 0 if b is 0. */
static real divided(real a, real b)
{
    return b == <0> ? <0> : saturated(a/b);
}
""",
    "power": """/* base to the power of exponent, or 0 where that is undefined. */
static real power(real base, real exponent)
{
    if (base == <0>) { return exponent == <0> ? <1> : <0>; }
    if (base < <0> && exponent != floor(exponent)) { return <0>; }
    return saturated(pow(base, exponent));
}
""",
    "angle": """/* The angle of the point (x, y). Adding 0 removes the sign of a negative zero. */
static real angle(real y, real x)
{
    return atan2(y + <0>, x + <0>);
}
""",
    "sign": """/* The sign of x: -1, 0 or 1. */
static real sign(real x)
{
    return x > <0> ? <1> : x < <0> ? <-1> : <0>;
}
""",
    "wrap": """/* The angle x, brought into [-pi, pi). */
static real wrap(real x)
{
    const real pi = <3.141592653589793>, turn = <6.283185307179586>;
    const real rest = x - turn*floor((x + pi)/turn);
    return rest >= -pi && rest < pi ? rest : -pi;
}
""",
    "level": """/* Rounds x to the nearest of the levels that divide low to high into count equal steps. */
static real level(real x, real low, real high, real count)
{
    const real k = floor((clip(x, low, high) - low)*count/(high - low) + <0.5>);
    return fmin(low + k*(high - low)/count, high);
}
""",
    "shift": """/* Moves all past values back by one step. */
static void shift(real *past, int count)
{
    for (int k = count - 1; k > 0; k--) { past[k] = past[k - 1]; }
}
""",
    "fill": """/* Sets all past values to x. */
static void fill(real *past, int count, real x)
{
    for (int k = 0; k < count; k++) { past[k] = x; }
}
""",
    "weighted_mean": """/* The mean of the outputs, weighted by exp(fit - largest fit). */
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

_LAYER = """/* A layer of a network with the activation function {words}. */
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


_ALL_HELPERS = _HELPERS | {
    layer_function(activation, over): _layer_helper(activation, over)
    for activation in _ACTIVATIONS
    for over in (False, True)
}


# How C writes operations and statements, and which names are reserved.

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
    """Return a C text in a precision: `real` and `<0.5>` become double or float, and so do functions."""
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

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=_ALL_HELPERS, number=_number)

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


_ADVICE = (
    "Compile with -ffp-contract=off (a fused multiply-add rounds differently), and not with -ffast-math.",
    "Inputs are limited to +/-1e12. NaN inputs are not detected: check for them before the call.",
)


@dataclass(frozen=True)
class TranslationUnit:
    """The parts of a C export, kept apart so that several exports can share one file."""

    prefix: str
    """The identifier that all names of the export begin with."""
    types: str
    """The definitions of the structs for inputs, memory and outputs."""
    functions: str
    """The definitions of the functions, without the helpers that they call."""
    precision: Precision
    members: Mapping[Variable, str]
    """The names of inputs, setpoints and actions in the structs."""

    @property
    def prototypes(self) -> str:
        """The declarations of the two functions that the caller uses."""
        name = self.prefix
        return (
            "/* Resets the memory. Call it before the first step, and whenever a new episode begins. */\n"
            f"void {name}_init({name}_memory *memory);\n\n"
            "/* Computes one control step: the actions for the present inputs. */\n"
            f"{_step_head(name)};\n"
        )

    def header(self, about: list[str]) -> str:
        """Return the text of the header file; `about` has the lines of its first comment."""
        guard = f"{self.prefix.upper()}_H"
        comment = "\n".join(commented(about, " *"))
        head = f"/*\n{comment}\n */\n#ifndef {guard}\n#define {guard}\n\n"
        return f"{head}{self.types}\n{self.prototypes}\n#endif\n"

    def source(self, about: list[str]) -> str:
        """Return the text of the source file; `about` has the lines of its first comment."""
        comment = "\n".join(commented([*about, *_ADVICE], " *"))
        head = f'/*\n{comment}\n */\n#include "{self.prefix}.h"\n\n#include <math.h>\n\n'
        return head + helper_text([self]) + self.functions


def _step_head(name: str) -> str:
    return folded(
        f"void {name}_step({name}_memory *memory, const {name}_input *input, {name}_output *output)", ""
    )


def helper_text(units: list[TranslationUnit]) -> str:
    """Return the helper functions that some units, all of the same precision, call."""
    names = _DIALECT.helpers_in("\n".join(unit.functions for unit in units))
    return "".join(f"{typed(_DIALECT.helpers[name], units[0].precision)}\n" for name in names)


def c_unit(routine: Routine, name: str, precision: Precision) -> TranslationUnit:
    """Print a routine as C.

    Args:
        routine: What the controller does at every step.
        name: The name of the export; an identifier is made of it.
        precision: Double or single precision.

    Returns:
        The parts of a header and a source.
    """
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
        memory.append(("int started", "0 until the first step"))
    memory += [
        (f"{real} {names[ring_key(ring.name)]}[{ring.depth + 1}]", "[k]: value k steps ago")
        for ring in routine.rings
    ]
    inputs = [(f"{real} {names[one.variable]}", _words(names, one)) for one in routine.observed]
    outputs = [(f"{real} {names[one.action]}", output_words(one)) for one in routine.outputs]
    yield from _struct(f"{prefix}_input", inputs)
    yield from _struct(f"{prefix}_memory", memory)
    yield from _struct(f"{prefix}_output", outputs)


def _words(names: Names, one: Input, words: str = "") -> str:
    """Describe an input in a comment: its original name if that is another one, its unit, more words."""
    spelled = "" if names[one.variable] == plain_name(one.variable) else str(one.variable)
    return ", ".join(filter(None, (spelled, one.unit, words)))


def _struct(name: str, members: list[tuple[str, str]]) -> Iterator[str]:
    yield "typedef struct {"
    for member, words in members or [("int unused", "a struct in C must have a member")]:
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
    yield _step_head(prefix)
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
    """The target `c`: a source and a header in C99."""

    name, title, endings = "c", "C", (".c", ".h")
    networks, single = True, True
    verifier = "clearloop.verification.verdict:run_c"

    def write(self, order: Order) -> Files:
        """Return the source and the header."""
        unit = c_unit(lower(order.controller), order.name, order.precision)
        words = about(order.controller, order.name)
        return {f"{unit.prefix}.c": unit.source(words), f"{unit.prefix}.h": unit.header(words)}
