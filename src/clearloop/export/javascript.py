"""JavaScript: an ES module with the functions `reset` and `act`."""

import json
from collections.abc import Iterator

from clearloop.export.about import commented, folded
from clearloop.export.environment import Environment, ring_key
from clearloop.export.javascript_words import DIALECT, RESERVED, SYNTAX
from clearloop.export.naming import Names
from clearloop.export.precision import DOUBLE
from clearloop.export.routine import Input, Routine
from clearloop.export.statements import lines

STEP = "  "


def javascript(routine: Routine, about: list[str]) -> str:
    names = Names({*RESERVED, *DIALECT.helpers})
    environment = Environment(
        routine=routine, dialect=DIALECT, precision=DOUBLE, names=names, ring="memory.{}[{}]"
    )
    act = list(_act(environment))
    tables = [folded(table, "") for table in environment.tables]
    functions = "\n".join([*tables, *[""][: len(tables)], *_reset(environment), "", *act, ""])
    helpers = "".join(f"{DIALECT.helpers[name]}\n" for name in DIALECT.helpers_in(functions))
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
        yield f"{STEP}const {names[one.variable]} = limited({_source(one, names)});"
    if routine.remembers_the_start:
        yield f"{STEP}const first = !memory.started;\n{STEP}memory.started = true;"
    for ring in routine.rings:
        yield f"{STEP}memory.{names[ring_key(ring.name)]}.copyWithin(1, 0);"
    body = [text for one in environment.run() for text in lines(one, environment, SYNTAX)]
    for line in "\n".join(filter(None, body)).splitlines():
        yield folded(line, STEP)
    answer = ", ".join(f"{_key(one.action.name)}: {names[one.action]}" for one in routine.outputs)
    yield f"{STEP}return {{ {answer} }};\n}}"


def _key(name: str) -> str:
    """In brackets if it means something to JavaScript, which would not make it a key."""
    return "[" * (name == "__proto__") + json.dumps(name) + "]" * (name == "__proto__")


def _source(one: Input, names: Names) -> str:
    key = json.dumps(one.variable.name)
    if one.variable.part == "value":
        return f"observation[{key}]"
    known = "" if one.default is None else f" ?? memory.{names[one.variable]}"
    return f"setpoint[{key}]{known}"
