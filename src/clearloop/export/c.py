"""C99: a header and a source; no allocation, and no state but a struct of the caller's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clearloop.export.about import commented, folded, harmless
from clearloop.export.c_words import DIALECT, RESERVED, SYNTAX, typed
from clearloop.export.environment import Environment, plain_name, ring_key
from clearloop.export.naming import Names
from clearloop.export.precision import Precision
from clearloop.export.routine import Input, Output, Routine
from clearloop.export.statements import STEP, lines
from clearloop.expression import Variable

ADVICE = (
    "Compile with -ffp-contract=off (a fused multiply-add rounds differently), and not with -ffast-math.",
    "An input beyond 1e12 counts as 1e12. Catch what is not a number (NaN) before.",
)


@dataclass(frozen=True)
class Unit:
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


def helper_text(units: list[Unit]) -> str:
    """The small functions that some units need, which have the same precision."""
    names = DIALECT.helpers_in("\n".join(unit.functions for unit in units))
    return "".join(f"{typed(DIALECT.helpers[name], units[0].precision)}\n" for name in names)


def c_unit(routine: Routine, name: str, precision: Precision) -> Unit:
    prefix = Names(RESERVED).give("", name)
    names = Names({*RESERVED, *DIALECT.helpers, "memory", "input", "output", "first", "k", "row"})
    environment = Environment(
        routine=routine, dialect=DIALECT, precision=precision, names=names, ring="memory->{}[{}]"
    )
    step = list(_step(environment, prefix))
    tables = [folded(table, STEP) for table in environment.tables]
    step[2:2] = tables
    functions = "\n".join([*_init(environment, prefix), "", *step, ""])
    types = "\n".join(_types(environment, prefix))
    things = [*(one.variable for one in routine.inputs), *(one.action for one in routine.outputs)]
    members = {thing: names[thing] for thing in things}
    return Unit(prefix, types, typed(functions, precision), precision, members)


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
    outputs = [(f"{real} {names[one.action]}", _range(one)) for one in routine.outputs]
    yield from _struct(f"{prefix}_input", inputs)
    yield from _struct(f"{prefix}_memory", memory)
    yield from _struct(f"{prefix}_output", outputs)


def _words(names: Names, one: Input, words: str = "") -> str:
    """What it is called elsewhere, if not the same; its unit."""
    spelled = "" if names[one.variable] == plain_name(one.variable) else str(one.variable)
    return ", ".join(filter(None, (spelled, one.unit, words)))


def _range(output: Output) -> str:
    if output.limits is None:
        return output.unit
    low, high = output.limits
    step = f" in {output.parts} steps" if output.parts else ""
    return f"{output.unit}, {low:g} to {high:g}{step}".removeprefix(", ")


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
    body = [text for one in environment.run() for text in lines(one, environment, SYNTAX)]
    for line in "\n".join(body).splitlines():
        yield folded(line, STEP)
    yield "}"
