"""Python: one file that needs nothing but the standard library, with the functions `reset` and `act`."""

from collections.abc import Iterator

from clearloop.export.about import WIDTH, commented, folded
from clearloop.export.environment import Environment, ring_key
from clearloop.export.naming import Names
from clearloop.export.precision import DOUBLE
from clearloop.export.python_words import DIALECT, RESERVED, SYNTAX
from clearloop.export.routine import Input, Routine
from clearloop.export.statements import STEP, lines


def python(routine: Routine, about: list[str]) -> str:
    names = Names({*RESERVED, *DIALECT.helpers, "value"})
    environment = Environment(
        routine=routine, dialect=DIALECT, precision=DOUBLE, names=names, ring="memory.{}[{}]"
    )
    act = list(_act(environment))
    tables = [_folded(table, "") for table in environment.tables]
    functions = "\n".join([*tables, *["\n"][: len(tables)], *_memory(environment), *act, ""])
    helpers = "".join(f"{DIALECT.helpers[name]}\n\n" for name in DIALECT.helpers_in(functions))
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
    body = [text for one in environment.run() for text in lines(one, environment, SYNTAX)]
    for line in "\n".join(filter(None, body)).splitlines():
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
