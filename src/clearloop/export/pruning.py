"""What a routine computes for nothing (a gain is 0, a rule has no weight) is left out of it."""

from dataclasses import replace

from clearloop.export.routine import (
    Best,
    Layer,
    Let,
    Mean,
    Output,
    Routine,
    Statement,
    Store,
    Sum,
    formulas,
    targets,
)
from clearloop.expression import Variable, variables


def pruned(routine: Routine) -> Routine:
    """The routine with only what its outputs depend on, now or in later steps."""
    needed: set[Variable] = set()
    count = -1
    while len(needed) > count:  # a ring that is read makes what it stores needed
        count = len(needed)
        for statement in reversed(routine.body):
            if _is_needed(statement, needed):
                needed |= _reads(statement)
    body = tuple(statement for statement in routine.body if _is_needed(statement, needed))
    rings = tuple(statement.ring for statement in body if isinstance(statement, Store))
    inputs = tuple(one for one in routine.inputs if one.variable in needed)
    return replace(routine, inputs=inputs, rings=rings, body=body)


def _is_needed(statement: Statement, needed: set[Variable]) -> bool:
    match statement:
        case Output():
            return True
        case Store(ring=ring):
            return _array(ring.name) in needed
        case Let(target=target) | Sum(target=target) | Mean(target=target):
            return target in needed
    return any(_array(target) in needed or target in needed for target in targets(statement))


def _reads(statement: Statement) -> set[Variable]:
    read = {_stem(v) for tree in formulas(statement) for v in variables(tree)}
    match statement:
        case Sum(ring=ring):
            read.add(_array(ring.name))
        case Mean(source=source) | Layer(source=source) | Best(source=source):
            read.add(_array(source))
    return read


def _stem(variable: Variable) -> Variable:
    return variable if variable.lag is None else _array(variable)


def _array(variable: Variable) -> Variable:
    """Stands for all elements of an array, which may have the name of a value."""
    return Variable(variable.name, variable.part, 0)
