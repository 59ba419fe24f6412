"""What a PID block can have beside its law, all off by default; at their first values all but anti-windup
change nothing.

The integral of a clearloop PID is a sum over the last `window` errors. So anti-windup means: an error that pushes an
action further beyond its limit enters the window as 0. Where several actions integrate the same error, all
must be beyond. The windows go on while the block is operated by hand; back in automatic, the action begins where
it is, and the difference to what the law wants fades with `transfer_time`.
"""

from dataclasses import dataclass, field, replace
from functools import reduce

from clearloop.controllers import PID, Controller
from clearloop.controllers.reading import read_variable
from clearloop.errors import ClearloopError, quoted
from clearloop.export.routine import Input, Let, Output, Ring, Routine, Statement, Store, Sum
from clearloop.export.routine import formulas, targets
from clearloop.export.structured_text.outputs import Limited, Operated
from clearloop.export.structured_text.writer import Conduct
from clearloop.export.terms import call
from clearloop.expression import Call, Expression, Number, Variable, variables

OPTIONS = ("anti-windup", "deadband", "derivative-filter", "manual", "rate-limit")
_TIMED = ("derivative-filter", "manual", "rate-limit")


@dataclass
class Variation:
    """A routine with options, while they are worked in."""

    controller: PID
    routine: Routine
    notes: dict[Variable, str] = field(default_factory=dict)
    kept: dict[Variable, Expression] = field(default_factory=dict)
    conduct: Conduct = field(default_factory=Limited)

    def __post_init__(self) -> None:
        body = self.routine.body
        self._taken = {v.name for one in body for tree in formulas(one) for v in variables(tree)}
        self._taken |= {v.name for one in body for v in targets(one)}
        self._taken |= {one.variable.name for one in self.routine.inputs}

    def fresh(self, name: str) -> Variable:
        unique, number = name, 2
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return Variable(unique)

    def input(self, name: str, unit: str, note: str, default: float = 0.0) -> Variable:
        variable = self.fresh(name)
        more = Input(variable=variable, unit=unit, default=default)
        self.routine = replace(self.routine, inputs=(*self.routine.inputs, more))
        self.notes[variable] = note
        return variable

    def rewrite(self, body: list[Statement]) -> None:
        rings = tuple(one.ring for one in body if isinstance(one, Store))
        self.routine = replace(self.routine, body=tuple(body), rings=rings)


def varied(controller: Controller, routine: Routine, options: frozenset[str]) -> Variation:
    """The routine of a PID with options."""
    for option in sorted(options):
        if option not in OPTIONS:
            raise ClearloopError(f"--with {option}: unknown; there is {', '.join(OPTIONS)}")
        if not isinstance(controller, PID):
            raise ClearloopError(f"--with {option}: only a controller of kind 'pid' has it, not {quoted(controller.kind)}")
        if option in _TIMED and controller.dt is None:
            raise ClearloopError(f"--with {option}: the time between two steps is not known: give --task")
'''
