"""States that are computed from others: velocities, filters, integrals.

A formula gives a state's value from what is seen at the same time, and from what was before: `angle`,
`angle[t-1]`, `heater[t-1]`, `angle.error`, its own past.
"""

from collections.abc import Iterator, Mapping

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, Number, Variable, parse, substitute, variables
from clearloop.task.faults import Fault
from clearloop.task.scope import MOST_STEPS_BACK, Scope
from clearloop.task.tables import State


def derive_states(states: Mapping[str, State], scope: Scope) -> dict[str, Expression]:
    """The formula of each state that has one, in state order."""
    return {
        name: parse_derived(state.formula, name, scope)
        for name, state in states.items()
        if state.formula is not None
    }


def derived_faults(states: Mapping[str, State], scope: Scope) -> Iterator[Fault]:
    for name, state in states.items():
        if state.formula is not None:
            if state.external:
                yield Fault(("states", name), "has a formula, so it is not external: remove one of the two")
            try:
                formula = parse_derived(state.formula, name, scope)
            except ClearloopError as error:
                yield Fault(("states", name, "formula"), str(error))
                continue
            longest = max((variable.lag or 0 for variable in variables(formula)), default=0)
            if longest > scope.history:
                what = f"looks {longest} steps back; give the task history = {longest}"
                yield Fault(("states", name, "formula"), what)


def parse_derived(text: str, name: str, scope: Scope) -> Expression:
    """`dt` is a name for the task's, unless something else is called so."""
    own = () if "dt" in scope.names else ("dt",)
    formula = parse(text, (*scope.names, *own))
    later = scope.derived[scope.derived.index(name) :] if name in scope.derived else ()
    for variable in variables(formula):
        if variable.part != "value" and variable.name not in scope.setpoints:
            raise ClearloopError(f"'{variable}': {variable.name} has no setpoint; give it one in [states]")
        if variable.lag is not None and variable.lag > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK:,} steps")
        if not variable.lag and variable.part != "setpoint":
            if variable.name in scope.actions:
                raise ClearloopError(f"'{variable}' is not chosen yet; it can be read from [t-1] on")
            if variable.name in later:
                what = "itself" if variable.name == name else "a state that is derived after it"
                raise ClearloopError(f"'{variable}' is {what}; it can be read from [t-1] on")
    return substitute(formula, {Variable("dt"): Number(scope.dt)} if own else {})


def one_step_on(formula: Expression) -> Expression:
    """As of the end of a step, in the words of rewards: `x` after it, `x[t]` before it, `u` during it."""
    return substitute(formula, {v: _one_step_on(v) for v in variables(formula)})


def _one_step_on(variable: Variable) -> Variable:
    return Variable(variable.name, variable.part, variable.lag - 1 if variable.lag else None)


def one_step_back(formula: Expression) -> Expression:
    """A formula for the next value from the present ones, as one for the present value from earlier ones."""
    return substitute(formula, {v: _one_step_back(v) for v in variables(formula) if v.part != "setpoint"})


def _one_step_back(variable: Variable) -> Variable:
    return Variable(variable.name, variable.part, (variable.lag or 0) + 1)
