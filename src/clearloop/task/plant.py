"""The true system of a task as expressions, and how it is simulated: starts, signals, exploration.

Besides the task's states a plant may have hidden ones, which no sensor shows, and disturbances.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression, Number, Variable, fold, parse, substitute, variables
from clearloop.task.tables import (
    MOST_STEPS_BACK,
    Action,
    Exploration,
    Fault,
    Plant,
    Signal,
    State,
    TaskScope,
    name_faults,
    state_faults,
)

# `where` tables name numbers and parts of formulas; each may use the names above it.

_LARGEST = 10_000  # nodes of a formula; every line of `where` could double it

Definitions = Mapping[Variable, Expression]
"""The names that are defined so far, with their expressions."""


def put_in(
    definition: float | str,
    names: tuple[str, ...],
    known: Definitions,
    check: Callable[[Variable], None],
) -> Expression:
    """Parse a formula, and put the expressions of defined names in their places.

    Args:
        definition: A number, or the text of a formula.
        names: The names that the formula may read.
        known: The names that are defined in the same `where` table, with their expressions.
        check: Raises an error for a variable that may not be read here.

    Raises:
        ClearloopError: The formula is wrong, too long, or looks back too far.
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
        raise ClearloopError(
            f"has more than {_LARGEST:,} numbers, names and operations after `where` is inserted"
        )
    return substitute(formula, known)


def _size(formula: Expression, sizes: Mapping[Variable, int]) -> int:
    """Count the nodes that a substitution would give, before it fills the memory."""

    def leaf(node: Number | Variable) -> int:
        return sizes.get(node, 1) if isinstance(node, Variable) else 1

    return fold(formula, leaf, lambda _, parts: 1 + sum(parts))


# Derived states are computed from others: velocities, filters, integrals.
#
# A formula gives a state's value from what is measured at the same time, and from the past: `angle`,
# `angle[t-1]`, `heater[t-1]`, `angle.error`, its own past.


def derive_states(states: Mapping[str, State], scope: TaskScope) -> dict[str, Expression]:
    """Parse the formula of each state that has one, in state order."""
    return {
        name: parse_derived(state.formula, name, scope)
        for name, state in states.items()
        if state.formula is not None
    }


def derived_faults(states: Mapping[str, State], scope: TaskScope) -> Iterator[Fault]:
    """Check the formulas of derived states."""
    for name, state in states.items():
        if state.formula is not None:
            if state.external:
                yield Fault(("states", name), "has a formula and external = true: remove one of the two")
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
    """Parse the formula of the state `name`. `dt` is the task's, unless a state or action is called so."""
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
                raise ClearloopError(
                    f"'{variable}' is not chosen yet; read a past value, such as {variable.name}[t-1]"
                )
            if variable.name in later:
                what = "itself" if variable.name == name else "a state that is derived after it"
                raise ClearloopError(
                    f"'{variable}' is {what}; read a past value, such as {variable.name}[t-1]"
                )
    return substitute(formula, {Variable("dt"): Number(scope.dt)} if own else {})


# Memory: ready features, which give a controller states of its own. They are computed states like those that
# a task file has formulas for.

FILTERED = 20  # parts of the horizon; a filter forgets in one of them


def memory_features(
    memory: Sequence[str],
    states: Mapping[str, State],
    actions: Mapping[str, Action],
    horizon: int,
) -> dict[str, State]:
    """Return the computed states that a task's `memory` asks for, by their names.

    Args:
        memory: The kinds of features: "integral", "filter" or "setpoint".
        states: The task's states; computed ones get no features.
        actions: The task's actions.
        horizon: The task's horizon, a twentieth of which is the time constant of filters.
    """
    found = {}
    free = " or ".join(
        f"{name}[t-1] > {action.limits[0]!r} and {name}[t-1] < {action.limits[1]!r}"
        for name, action in actions.items()
        if not action.count
    )
    share = 1 / max(2.0, horizon / FILTERED)
    for kind in dict.fromkeys(memory):
        for name, state in states.items():
            own, error = f"{name}_{kind}", name if state.setpoint is None else f"{name}.error"
            if state.formula is not None:
                continue
            match kind:
                case "integral":  # while every action is at a limit, the sum would only wind up
                    added = f"if({free}, {error}, 0)" if free else error
                    found[own] = State(unit=f"{state.unit} s".strip(), formula=f"{own}[t-1] + dt*{added}")
                case "filter":
                    formula = f"{own}[t-1] + {share:.3g}*({error} - {own}[t-1])"
                    found[own] = State(unit=state.unit, formula=formula)
                case "setpoint" if isinstance(state.setpoint, str):
                    found[own] = State(unit=state.unit, formula=f"{name}.setpoint")
    return found


def one_step_on(formula: Expression) -> Expression:
    """Rewrite a formula for rewards: `x` is then read after the step, `x[t]` before it, `u` during it."""
    return substitute(formula, {v: _one_step_on(v) for v in variables(formula)})


def _one_step_on(variable: Variable) -> Variable:
    return Variable(variable.name, variable.part, variable.lag - 1 if variable.lag else None)


def one_step_back(formula: Expression) -> Expression:
    """Rewrite a formula for the next value as one for the present value, from values a step earlier."""
    return substitute(formula, {v: _one_step_back(v) for v in variables(formula) if v.part != "setpoint"})


def _one_step_back(variable: Variable) -> Variable:
    return Variable(variable.name, variable.part, (variable.lag or 0) + 1)


# The [plant] table.


class Inlined(NamedTuple):
    """The plant's formulas, with everything that `where` names put in its place."""

    derivatives: dict[str, Expression]
    """the time derivatives of the states that are integrated, hidden ones included"""
    next: dict[str, Expression]
    """the difference equations of the others"""
    observed: dict[str, Expression]
    """what sensors show"""
    faults: list[Fault]
    """what is wrong with the table"""


NOTHING = Inlined({}, {}, {}, [])


def hidden_names(plant: Plant, states: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the plant's states that the task does not have."""
    return tuple(name for name in (*plant.derivative, *plant.next) if name not in states)


def signal_names(plant: Plant, signals: Mapping[str, Signal], scope: TaskScope) -> tuple[str, ...]:
    """Return the names of the disturbances: signals that are neither an external state nor a setpoint."""
    known = {*scope.names, *(aim for aim in scope.setpoints.values() if isinstance(aim, str))}
    return tuple(name for name in signals if name not in known) if plant else ()


def inline(plant: Plant, signals: Mapping[str, Signal], scope: TaskScope) -> Inlined:
    """Parse the formulas of a plant and put in what `where` names."""
    hidden, outside = hidden_names(plant, scope.states), signal_names(plant, signals, scope)
    names = (*scope.names, *hidden, *outside)
    faults = _name_faults(plant, scope, hidden, outside)
    if faults or plant.foreign:
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
        Fault(
            ("plant", "observed", name), f"'{v}' is not chosen yet; read a past value, such as {v.name}[t-1]"
        )
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
    missing = [name for name in scope.states if not plant.foreign and name not in (*told, *own)]
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


# The [exploration] table, where a law chooses the actions.


class ExplorationLaw(NamedTuple):
    """The formulas by which exploration chooses actions."""

    actions: tuple[Expression, ...]
    """the formula of each action; empty if actions are random"""
    faults: list[Fault]
    """what is wrong with the table"""


def read_law(plan: Exploration | None, states: tuple[str, ...], actions: tuple[str, ...]) -> ExplorationLaw:
    """Parse the law of an [exploration] table, which may read all of the plant's `states`."""
    if plan is None:
        return ExplorationLaw((), [])
    faults = [
        *name_faults(("exploration", "where"), plan.where, taken=(*states, *actions)),
        *_action_faults(plan.law, actions),
    ]
    known: dict[Variable, Expression] = {}

    def check(variable: Variable) -> None:
        if variable.name in actions and not variable.lag:
            raise ClearloopError(
                f"'{variable}' is being chosen; read a past value, such as {variable.name}[t-1]"
            )

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


# The [signals] table: the course of setpoints, external states and disturbances in simulations.


def signal_faults(signals: Mapping[str, Signal], scope: TaskScope, has_plant: bool) -> Iterator[Fault]:
    """Check that something reads each signal. Without a plant there are no disturbances."""
    columns = [aim for aim in scope.setpoints.values() if isinstance(aim, str)]
    known = (*columns, *scope.external)
    for name in signals:
        if name not in known and (name in scope.names or not has_plant):
            hint = did_you_mean(name, known) or "; expected the column of a setpoint, or an external state"
            yield Fault(("signals",), f"nothing reads {quoted(name)}{hint}")


def draw_signal(signal: Signal, count: int, length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw `count` courses of a signal [count, length], a value for each control interval."""
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


# The [starts] table: episodes start uniformly in a box. Scores use one fixed set of starts, searches random
# ones.

Box = NDArray[np.float64]
"""[S, 2], the lower and the upper end of each state."""


def start_faults(starts: Mapping[str, object], states: Sequence[str]) -> Iterator[Fault]:
    """Check the [starts] table."""
    if "from" not in starts:
        yield from box_faults(("starts",), starts, states)
    elif len(starts) > 1 or isinstance(starts["from"], tuple):
        where = "episodes" if starts["from"] == "episodes" else "batch"
        yield Fault(("starts",), f'from = "{where}" allows no other keys: remove it, or the others')


def box_faults(where: tuple[str, ...], box: Mapping[str, object], states: Sequence[str]) -> Iterator[Fault]:
    """Check a table of intervals that stands at `where`: its keys must be states."""
    yield from state_faults(where, box.keys(), states)
    for name in (name for name, value in box.items() if isinstance(value, str)):
        yield Fault((*where, name), "expected two numbers, the smaller first")


def make_box(starts: Mapping[str, object], states: Sequence[str]) -> Box | None:
    """Make a box [S, 2] from the [starts] table, 0 for states without one; None: from the batch."""
    if "from" in starts:
        return None
    box = np.array([starts.get(name, (0.0, 0.0)) for name in states], dtype=np.float64)
    box.flags.writeable = False
    return box


def sobol_starts(box: Box, n: int, rng: np.random.Generator | None = None) -> NDArray[np.float64]:
    """Return the first n points [n, S] of the Sobol sequence over the free dimensions, in state order.

    Without `rng` the sequence is unscrambled; with one it is scrambled at random and still even.
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
    """Draw n points [n, S] uniformly from the box."""
    return rng.uniform(box[:, 0], box[:, 1], size=(n, len(box)))
