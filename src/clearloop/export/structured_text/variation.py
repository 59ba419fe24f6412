"""A PID's routine while options are worked into it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clearloop.controllers import PID
from clearloop.controllers.reading import read_variable
from clearloop.export.routine import Input, Let, Routine, Statement, Store, formulas, targets
from clearloop.export.structured_text.outputs import Limited
from clearloop.export.structured_text.writer import Conduct, Note
from clearloop.expression import Call, Expression, Variable, variables


@dataclass
class Variation:
    controller: PID
    routine: Routine
    notes: dict[Variable, Note] = field(default_factory=dict)
    kept: dict[Variable, Expression] = field(default_factory=dict)
    conduct: Conduct = field(default_factory=Limited)

    def __post_init__(self) -> None:
        body = self.routine.body
        self.errors = _errors(self.controller, self.routine)
        self._taken = {v.name for one in body for tree in formulas(one) for v in variables(tree)}
        self._taken |= {v.name for one in body for v in targets(one)}
        self._taken |= {one.variable.name for one in self.routine.inputs}

    def fresh(self, name: str) -> Variable:
        unique, number = name, 2
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return Variable(unique)

    def input(self, name: str, unit: str, words: str, default: float = 0.0, *, low: float = 0.0) -> Variable:
        variable = self.fresh(name)
        more = Input(variable=variable, unit=unit, default=default)
        self.routine = replace(self.routine, inputs=(*self.routine.inputs, more))
        self.notes[variable] = Note(words, low)
        return variable

    def rewrite(self, body: Sequence[Statement]) -> None:
        rings = tuple(one.ring for one in body if isinstance(one, Store))
        self.routine = replace(self.routine, body=tuple(body), rings=rings)


def _errors(controller: PID, routine: Routine) -> dict[Variable, str]:
    """What a loop sees of a state, setpoint − value: its name in the routine, and the state's."""
    loops = [loop for output in controller.outputs.values() for loop in output.loops]
    states, found = {read_variable(loop.input).name for loop in loops}, {}
    for statement in routine.body:
        match statement:
            case Let(target=target, value=Call(arguments=(*_, Variable(name=name, lag=None)))):
                if name in states:
                    found[target] = name
    return found
