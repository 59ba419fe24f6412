"""The true system as expressions: what `where` names is put in its place.

Besides the task's states it may have others, that no sensor shows, and signals that come from outside.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression, Number, Variable, fold, parse, substitute, variables
from clearloop.task.tables import (
    MOST_STEPS_BACK,
    Exploration,
    Fault,
    Plant,
    Signal,
    State,
    TaskScope,
    name_faults,
    state_faults,
)

# `where` tables: names for numbers and for parts of formulas; each may use those above it.

_LARGEST = 10_000  # nodes of a formula; every line of `where` could double it

Definitions = Mapping[Variable, Expression]
"""What is defined so far."""


def put_in(
    definition: float | str,
    names: tuple[str, ...],
    known: Definitions,
    check: Callable[[Variable], None],
) -> Expression:
    """A formula over names and what is known, which is put in its place.

    `check` raises an error for a variable that may not be read here.
    """
    if isinstance(definition, float):
        return Number(definition)
    formula = parse(definition, (*names, *(variable.name for variable in known)))
    used = variables(formula)
    for variable in used:
        if variable not in known:
            check(variable)
            if Variable(variable.name) in known:
                raise ClearloopError(f"'{variable}': only the present is defined; write {variable.name}")
        if (variable.lag or 0) > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK:,} steps")
    sizes = {variable: _size(known[variable], {}) for variable in used if variable in known}
    if _size(formula, sizes) > _LARGEST:
        raise ClearloopError(f"longer than {_LARGEST:,} numbers, names and operations once `where` is put in")
    return substitute(formula, known)


def _size(formula: Expression, sizes: Mapping[Variable, int]) -> int:
    """In nodes, with variables as large as given. It is known before the memory is filled."""

    def leaf(node: Number | Variable) -> int:
        return sizes.get(node, 1) if isinstance(node, Variable) else 1

    return fold(formula, leaf, lambda _, parts: 1 + sum(parts))


# States that are computed from others: velocities, filters, integrals.
#
# A formula gives a state's value from what is seen at the same time, and from what was before: `angle`,
# `angle[t-1]`, `heater[t-1]`, `angle.error`, its own past.


def derive_states(states: Mapping[str, State], scope: TaskScope) -> dict[str, Expression]:
    """The formula of each state that has one, in state order."""
    return {
        name: parse_derived(state.formula, name, scope)
        for name, state in states.items()
        if state.formula is not None
    }


def derived_faults(states: Mapping[str, State], scope: TaskScope) -> Iterator[Fault]:
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


def parse_derived(text: str, name: str, scope: TaskScope) -> Expression:
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


class Inlined(NamedTuple):
    derivatives: dict[str, Expression]
    """of the states that are integrated, hidden ones included"""
    next: dict[str, Expression]
    """of those with difference equations: their values from what was before"""
    observed: dict[str, Expression]
    """what sensors show"""
    faults: list[Fault]


NOTHING = Inlined({}, {}, {}, [])


def hidden_names(plant: Plant, states: tuple[str, ...]) -> tuple[str, ...]:
    """What moves and is no state of the task."""
    return tuple(name for name in (*plant.derivative, *plant.next) if name not in states)


def signal_names(plant: Plant, signals: Mapping[str, Signal], scope: TaskScope) -> tuple[str, ...]:
    """Signals that only the plant knows: no external state, no setpoint."""
    known = {*scope.names, *(aim for aim in scope.setpoints.values() if isinstance(aim, str))}
    return tuple(name for name in signals if name not in known) if plant else ()


def inline(plant: Plant, signals: Mapping[str, Signal], scope: TaskScope) -> Inlined:
    hidden, outside = hidden_names(plant, scope.states), signal_names(plant, signals, scope)
    names = (*scope.names, *hidden, *outside)
    faults = _name_faults(plant, scope, hidden, outside)
    if faults or plant.gymnasium is not None:
        return NOTHING._replace(faults=faults)
    named: dict[Variable, Expression] = {}

    def check(variable: Variable) -> None:
        if variable.part != "value" or (variable.lag is not None and variable.name not in scope.actions):
            raise ClearloopError(f"'{variable}': a plant knows only the present; write {variable.name}")

    def expression(definition: float | str, *where: str) -> Expression:
        try:
            return put_in(definition, names, named, check)
        except ClearloopError as error:
            faults.append(Fault(("plant", *where), str(error)))
            return Number(0.0)  # what refers to it is not at fault

    for name, definition in plant.where.items():
        named[Variable(name)] = expression(definition, "where", name)
    derivatives = {name: expression(text, "derivative", name) for name, text in plant.derivative.items()}
    ahead = {name: one_step_back(expression(text, "next", name)) for name, text in plant.next.items()}
    observed = {name: expression(text, "observed", name) for name, text in plant.observed.items()}
    faults += [
        Fault(("plant", "observed", name), f"'{v}' is not chosen yet; it can be read from [t-1] on")
        for name in plant.observed
        for v in variables(observed[name])
        if v.name in scope.actions and not v.lag
    ]
    return Inlined(derivatives, ahead, observed, faults)


def _name_faults(
    plant: Plant, scope: TaskScope, hidden: tuple[str, ...], outside: tuple[str, ...]
) -> list[Fault]:
    tables = {"derivative": plant.derivative, "next": plant.next, "observed": plant.observed}
    given = [(table, name) for table, names in tables.items() for name in names]
    told = [name for _, name in given]
    own = (*scope.derived, *scope.external)
    missing = [name for name in scope.states if plant.gymnasium is None and name not in (*told, *own)]
    return [
        *name_faults(("plant", "derivative"), hidden, taken=scope.actions),
        *name_faults(("signals",), outside, taken=(*scope.names, *hidden)),
        *name_faults(("plant", "where"), plant.where, taken=(*scope.names, *hidden, *outside)),
        *state_faults(("plant", "observed"), plant.observed, scope.states),
        *state_faults(("plant", "on_failure"), plant.on_failure, (*scope.states, *hidden)),
        *(
            Fault(("plant", table), f"{quoted(name)} is given twice: in {', '.join(_where(name, tables))}")
            for table, name in given
            if told.count(name) > 1
        ),
        *(
            Fault(("plant", table), f"{quoted(name)} has a formula, or is external, in [states]")
            for table, name in given
            if name in own
        ),
        *(
            Fault(("plant", "derivative"), f"missing state '{name}'{did_you_mean(name, hidden)}")
            for name in missing
        ),
    ]


def _where(name: str, tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [table for table, names in tables.items() if name in names]


# How a batch is drawn from the plant, where a law chooses the actions.


class ExplorationLaw(NamedTuple):
    actions: tuple[Expression, ...]
    """of each action; nothing if they are random"""
    faults: list[Fault]


def read_law(plan: Exploration | None, states: tuple[str, ...], actions: tuple[str, ...]) -> ExplorationLaw:
    """`states`: of the plant."""
    if plan is None:
        return ExplorationLaw((), [])
    faults = [
        *name_faults(("exploration", "where"), plan.where, taken=(*states, *actions)),
        *_action_faults(plan.law, actions),
    ]
    known: dict[Variable, Expression] = {}

    def check(variable: Variable) -> None:
        if variable.name in actions and not variable.lag:
            raise ClearloopError(f"'{variable}' is being chosen; it can be read from [t-1] on")

    def expression(definition: float | str, *where: str) -> Expression:
        try:
            return put_in(definition, (*states, *actions), known, check)
        except ClearloopError as error:
            faults.append(Fault(("exploration", *where), str(error)))
            return Number(0.0)  # what refers to it is not at fault

    for name, definition in plan.where.items():
        known[Variable(name)] = expression(definition, "where", name)
    chosen = [expression(plan.law[name], "law", name) for name in actions if name in plan.law]
    return ExplorationLaw(tuple(chosen), faults)


def _action_faults(law: Mapping[str, str], actions: tuple[str, ...]) -> list[Fault]:
    where = ("exploration", "law")
    return [
        *(
            Fault(where, f"unknown action {quoted(name)}{did_you_mean(name, actions)}")
            for name in law
            if name not in actions
        ),
        *(Fault(where, f"missing action '{name}'") for name in actions if law and name not in law),
    ]


# How what comes from outside runs in simulations: setpoints, external states, disturbances.


def signal_faults(signals: Mapping[str, Signal], scope: TaskScope, has_plant: bool) -> Iterator[Fault]:
    """Of names that nothing reads: without a plant, there are no disturbances."""
    columns = [aim for aim in scope.setpoints.values() if isinstance(aim, str)]
    known = (*columns, *scope.external)
    for name in signals:
        if name not in known and (name in scope.names or not has_plant):
            hint = did_you_mean(name, known) or "; expected the column of a setpoint, or an external state"
            yield Fault(("signals",), f"nothing reads {quoted(name)}{hint}")


def draw_signal(signal: Signal, count: int, length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """[count, length]"""
    if signal.noise is not None:
        return rng.normal(0.0, signal.noise, (count, length))
    low, high = signal.steps or (0.0, 0.0)
    least, most = signal.every
    pieces = 2 + length // least
    when, what = rng.spawn(2)  # so that the first ones are the same for any count
    ends = np.cumsum(when.integers(least, most, (count, pieces), endpoint=True), axis=1)
    levels = what.uniform(low, high, (count, pieces))
    changes = np.zeros((count, length), np.int64)
    rows, columns = np.nonzero(ends < length)
    changes[rows, ends[rows, columns]] = 1
    return np.take_along_axis(levels, changes.cumsum(axis=1), axis=1)


# Where episodes start: uniformly in a box. Scores use one fixed set of starts, searches random ones.

Box = NDArray[np.float64]
"""[S, 2], the lower and the upper end of each state."""


def start_faults(starts: Mapping[str, object], states: Sequence[str]) -> Iterator[Fault]:
    if "from" not in starts:
        yield from box_faults(("starts",), starts, states)
    elif dict(starts) != {"from": "batch"}:
        yield Fault(("starts",), 'from = "batch" stands alone: remove it, or the other keys')


def box_faults(where: tuple[str, ...], box: Mapping[str, object], states: Sequence[str]) -> Iterator[Fault]:
    yield from state_faults(where, box.keys(), states)
    for name in (name for name, value in box.items() if value == "batch"):
        yield Fault((*where, name), "expected two numbers, the smaller first")


def make_box(starts: Mapping[str, object], states: Sequence[str]) -> Box | None:
    """Zero where a state is not named; None if starts come from the batch."""
    if "from" in starts:
        return None
    box = np.array([starts.get(name, (0.0, 0.0)) for name in states], dtype=np.float64)
    box.flags.writeable = False
    return box


def sobol_starts(box: Box, n: int, rng: np.random.Generator | None = None) -> NDArray[np.float64]:
    """[n, S]: the first points of the Sobol sequence over the free dimensions, in state order.

    Unscrambled without `rng`; with one, a random scrambling, which still covers the box evenly.
    """
    from scipy.stats.qmc import Sobol

    free = box[:, 0] < box[:, 1]
    starts = np.tile(box[:, 0], (n, 1))
    if free.any():
        low, high = box[free].T
        # Whole powers of two keep the sequence balanced, and SciPy quiet; the first n are the same points.
        sequence = Sobol(int(free.sum()), scramble=rng is not None, rng=rng)
        starts[:, free] = low + (high - low) * sequence.random_base2((n - 1).bit_length())[:n]
    return starts


def uniform_starts(box: Box, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """[n, S]."""
    return rng.uniform(box[:, 0], box[:, 1], size=(n, len(box)))
