"""The C export: a C99 header and source without allocation, whose only state is a struct of the caller."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clearloop.controllers.routine import Input, Routine, State
from clearloop.exports.comments import about, commented, folded, harmless
from clearloop.exports.guard import OPTIONS, routine_of
from clearloop.exports.printer import PLAIN, SPECIAL, STEP, Dialect, Environment, Names, plain_name, ring_key
from clearloop.exports.spans import Precision, Span
from clearloop.exports.statements import Syntax, body_lines, gain_words, layer_function, output_words
from clearloop.exports.targets import Files, Order, Target
from clearloop.expression import Variable
from clearloop.expression.nodes import READ_LIMIT

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
    return (b == <0>) ? <0> : saturated(a/b);
}
""",
    "power": """/* base to the power of exponent, or 0 where that is undefined. */
static real power(real base, real exponent)
{
    if (base == <0>) { return (exponent == <0>) ? <1> : <0>; }
    if ((base < <0>) && (exponent != floor(exponent))) { return <0>; }
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
    return (x > <0>) ? <1> : ((x < <0>) ? <-1> : <0>);
}
""",
    "wrap": """/* The angle x, brought into [-pi, pi). */
static real wrap(real x)
{
    const real pi = <3.141592653589793>, turn = <6.283185307179586>;
    const real rest = x - (turn*floor((x + pi)/turn));
    return ((rest >= -pi) && (rest < pi)) ? rest : -pi;
}
""",
    "level": """/* Rounds x to the nearest of the levels that divide low to high into count equal steps. */
static real level(real x, real low, real high, real count)
{
    const real k = floor(((clip(x, low, high) - low)*count/(high - low)) + <0.5>);
    return fmin(low + (k*(high - low)/count), high);
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
    "sigmoid": "<0.5> + (<0.5>*tanh(<0.5>*sum))",
}


def _layer_helper(activation: str, over: bool) -> str:
    add, bias = "sum += weights[(i*inputs) + j]*x[j]", "sum + bias[i]"
    if over:
        add = "sum = saturated(sum + saturated(weights[(i*inputs) + j]*x[j]))"
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

_DIALECT = Dialect(plain=_PLAIN, special=_SPECIAL, helpers=_ALL_HELPERS, number=_number, brackets=True)

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
    best_close="    if ((row == 0) || ({last}[0] > {value})) {{ {value} = {last}[0]; {chosen} = row; }}\n}}",
    best_choice="const real {target} = {table}[{chosen_index}];",
    output="real {name} = {value};",
    clip="{name} = clip({name}, {low}, {high});",
    level="{name} = level({name}, {low}, {high}, {parts});",
    answer="output->{name} = {name};",
    flag="const bool {target} = {value};",
    set="{name} = {value};",
    correct="memory->{past}[0] = {value};",
    act_result="real {target} = {zero};",
    act_open="if ({when}) {{\n    {law}(memory, input, output);",
    act_action="{target} = output->{action};",
    act_close="}}",
    act_restart=" else {{\n    memory->started = false; /* the next step is like a first one */\n}}",
    report="output->{name} = (unsigned int)({value});",
    status="output->{name} = 0u;",
    bit="if ({when}) {{\n    output->{name} |= {number}u; /* {words} */\n}}",
    remark="/* {words} */",
)


_COMPILER = (
    "Compile with -ffp-contract=off (a fused multiply-add rounds differently), and not with -ffast-math."
)
_UNGUARDED = "Inputs are limited to +/-1e12. NaN inputs are not detected: check for them before the call."
_GUARDED = (
    "The step guards itself: while an input is invalid (NaN, beyond +/-1e12 or its range, marked), the law "
    "does not run; the last action is held, then the safe value is given."
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
    """The names of inputs, setpoints, actions and reports in the structs."""
    guarded: bool = False
    """Whether the step checks its inputs."""

    @property
    def prototypes(self) -> str:
        """The declarations of the two functions that the caller uses."""
        name = self.prefix
        return (
            "/* Resets the memory. Call it before the first step, and whenever a new episode begins. */\n"
            f"void {name}_init({name}_memory *memory);\n\n"
            "/* Computes one control step: the actions for the present inputs. */\n"
            f"{_head(f'void {name}_step', name)};\n"
        )

    def header(self, about: list[str]) -> str:
        """Return the text of the header file; `about` has the lines of its first comment."""
        guard = f"{self.prefix.upper()}_H"
        comment = "\n".join(commented(about, " *"))
        head = f"/*\n{comment}\n */\n#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n\n"
        return f"{head}{self.types}\n{self.prototypes}\n#endif\n"

    def source(self, about: list[str]) -> str:
        """Return the text of the source file; `about` has the lines of its first comment."""
        comment = "\n".join(commented([*about, _COMPILER, _GUARDED if self.guarded else _UNGUARDED], " *"))
        head = f'/*\n{comment}\n */\n#include "{self.prefix}.h"\n\n#include <math.h>\n\n'
        return head + helper_text([self]) + self.functions


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
    law = Environment(
        routine=routine.law, dialect=_DIALECT, precision=precision, names=names, ring="memory->{}[{}]"
    )
    for gain in routine.law.gains:
        law.forms[gain.variable] = f"memory->{names[gain.variable]}"
    guarded = routine.law is not routine
    environment = _guard_environment(law, routine, prefix) if guarded else law
    step = list(_step(law, f"static void {prefix}_law" if guarded else f"void {prefix}_step", prefix))
    step[2 + guarded : 2 + guarded] = [folded(table, STEP) for table in law.tables]
    if guarded:
        step += ["", *_guarded_step(environment, prefix)]
    functions = "\n".join([*_init(environment, prefix), "", *step, ""])
    types = "\n".join(_types(environment, prefix))
    things = [*(one.variable for one in routine.inputs), *(one.action for one in routine.outputs)]
    things += [one.target for one in routine.reports]
    things += [one.variable for one in routine.law.gains]
    members = {thing: names[thing] for thing in things}
    return TranslationUnit(
        prefix, types, typed(functions, precision), precision, members, bool(routine.reports)
    )


def _guard_environment(law: Environment, routine: Routine, prefix: str) -> Environment:
    """Return the environment of a guard, which shares the names of its law and reads inputs as they are."""
    environment = Environment(
        routine=routine,
        dialect=_DIALECT,
        precision=law.precision,
        names=law.names,
        ring=law.ring,
        raw=True,
        law=f"{prefix}_law",
    )
    for one in routine.inputs:
        home = "input" if one.default is None else "memory"
        environment.forms[one.variable] = f"{home}->{law.names[one.variable]}"
    for state in routine.states:
        environment.forms[state.variable] = f"memory->{law.names[state.variable]}"
    environment.read_integrals(routine.law)
    return environment


def _types(environment: Environment, prefix: str) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    real = typed("real", environment.precision)
    memory = [
        (f"{_type(one, real)} {names[one.variable]}", _words(names, one, one.words or _CHANGEABLE))
        for one in routine.parameters
    ]
    memory += [(f"{real} {names[one.variable]}", gain_words(one)) for one in routine.law.gains]
    memory += [(f"{_type(one, real)} {names[one.variable]}", one.words) for one in routine.states]
    if routine.law.remembers_the_start:
        memory.append(("bool started", "false until the first step"))
    memory += [
        (f"{real} {names[ring_key(ring.name)]}[{ring.depth + 1}]", "[k]: value k steps ago")
        for ring in routine.law.rings
    ]
    inputs = [(f"{real} {names[one.variable]}", _words(names, one)) for one in routine.observed]
    outputs = [(f"{real} {names[one.action]}", output_words(one)) for one in routine.outputs]
    outputs += [(f"unsigned int {names[one.target]}", one.words) for one in routine.reports]
    yield from _struct(f"{prefix}_input", inputs)
    yield from _struct(f"{prefix}_memory", memory)
    yield from _struct(f"{prefix}_output", outputs)


_CHANGEABLE = "setpoint; may be changed between steps"


def _type(one: Input | State, real: str) -> str:
    return "bool" if one.flag else real


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
    starts = [(one.variable, one.default or 0.0, one.flag) for one in routine.parameters]
    starts += [(one.variable, one.value, False) for one in routine.law.gains]
    starts += [(one.variable, one.start, one.flag) for one in routine.states]
    for variable, start, flag in starts:
        text = ("true" if start else "false") if flag else environment.number(start)
        yield f"{STEP}memory->{names[variable]} = {text};"
    if routine.law.remembers_the_start:
        yield f"{STEP}memory->started = false;"
    for ring in routine.law.rings:
        past, zero = names[ring_key(ring.name)], environment.number(0.0)
        yield f"{STEP}fill(memory->{past}, {ring.depth + 1}, {zero});"
    if not (starts or routine.law.rings):
        yield f"{STEP}memory->unused = 0;"
    yield "}"


def _step(environment: Environment, head: str, prefix: str) -> Iterator[str]:
    routine, names = environment.routine, environment.names
    if head.startswith("static"):
        yield "/* The law, for valid inputs. */"
    yield _head(head, prefix)
    yield "{"
    for one in routine.inputs:
        home = "input" if one.default is None else "memory"
        given = f"{home}->{names[one.variable]}"
        text = f"limited({given})"
        if one.low != -READ_LIMIT:
            text = f"clip({given}, {environment.number(one.low)}, {environment.number(READ_LIMIT)})"
            environment.spans[one.variable] = Span(one.low, environment.precision.rounded(READ_LIMIT))
        yield f"{STEP}const real {names[one.variable]} = {text};"
    if not routine.observed:
        yield f"{STEP}(void)input;"
    if not (routine.parameters or routine.rings or routine.gains):
        yield f"{STEP}(void)memory;"
    if routine.remembers_the_start:
        yield f"{STEP}const bool first = !memory->started;\n{STEP}memory->started = true;"
    for ring in routine.rings:
        yield f"{STEP}shift(memory->{names[ring_key(ring.name)]}, {ring.depth + 1});"
    for line in body_lines(environment, _SYNTAX):
        yield folded(line, STEP)
    yield "}"


def _guarded_step(environment: Environment, prefix: str) -> Iterator[str]:
    """Yield the function that the caller uses: it checks the inputs, and calls the law if they are valid."""
    yield _head(f"void {prefix}_step", prefix)
    yield "{"
    for line in body_lines(environment, _SYNTAX):
        yield folded(line, STEP)
    yield "}"


def _head(head: str, prefix: str) -> str:
    text = f"{head}({prefix}_memory *memory, const {prefix}_input *input, {prefix}_output *output)"
    return folded(text, "")


class C(Target):
    """The target `c`: a source and a header in C99."""

    name, title, endings = "c", "C", (".c", ".h")
    networks, single, guards, options = True, True, True, OPTIONS
    verifier = "clearloop.verification.verdict:run_c"

    def write(self, order: Order) -> Files:
        """Return the source and the header."""
        routine = routine_of(order.controller, order.options, guard=order.guard)
        unit = c_unit(routine, order.name, order.precision)
        words = about(order.controller, order.name, order.options, order.origin)
        return {f"{unit.prefix}.c": unit.source(words), f"{unit.prefix}.h": unit.header(words)}
