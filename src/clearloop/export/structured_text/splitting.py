"""Formulas that are nested deeply, cut into parts with names: compilers allow only so many brackets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from clearloop.export.routine import (
    Fill,
    Let,
    Output,
    Ring,
    Routine,
    Statement,
    Store,
    Sum,
    formulas,
    targets,
)
from clearloop.expression import Call, Expression, Variable, fold, variables
from clearloop.expression.operations import Operation

DEEPEST = 12  # brackets in brackets


class _Piece(NamedTuple):
    tree: Expression
    nesting: int


@dataclass
class _Splitter:
    taken: set[str]
    before: list[Statement] = field(default_factory=list)

    def split(self, tree: Expression) -> Expression:
        return fold(tree, lambda leaf: _Piece(leaf, 0), self._call).tree

    def _call(self, operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
        pieces = [self._short(piece) for piece in arguments]
        nesting = max(_level(operation, number, piece) for number, piece in enumerate(pieces))
        return _Piece(Call(operation, tuple(piece.tree for piece in pieces)), nesting)

    def _short(self, piece: _Piece) -> _Piece:
        if piece.nesting < DEEPEST or piece.tree.kind == "condition":
            return piece
        number = next(n for n in range(1, len(self.taken) + 2) if f"part_{n}" not in self.taken)
        target = Variable(f"part_{number}")
        self.taken.add(target.name)
        self.before.append(Let(target, piece.tree))
        return _Piece(target, 0)


def _level(operation: Operation, number: int, piece: _Piece) -> int:
    """A sum goes on without brackets where it begins with a sum."""
    goes_on = (
        number == 0
        and operation.symbol
        and operation.arity == 2
        and (not isinstance(piece.tree, Call) or piece.tree.operation.precedence >= operation.precedence)
    )
    return piece.nesting + (not goes_on)


def split(routine: Routine) -> Routine:
    """The same routine, with no formula nested too deeply."""
    names = {v.name for statement in routine.body for tree in formulas(statement) for v in variables(tree)}
    names |= {v.name for statement in routine.body for v in targets(statement)}
    splitter = _Splitter(names)
    rings: dict[Ring, Ring] = {}
    body = [part for statement in routine.body for part in _statement(statement, splitter, rings)]
    return replace(routine, body=tuple(body), rings=tuple(rings.get(ring, ring) for ring in routine.rings))


def _statement(statement: Statement, splitter: _Splitter, rings: dict[Ring, Ring]) -> Iterator[Statement]:
    match statement:
        case Let() | Output():
            statement = replace(statement, value=splitter.split(statement.value))
        case Fill():
            statement = replace(statement, values=tuple(map(splitter.split, statement.values)))
        case Store(ring=ring):
            rings[ring] = replace(ring, holds=splitter.split(ring.holds))
            statement = Store(rings[ring])
        case Sum(ring=ring):
            statement = replace(statement, ring=rings.get(ring, ring))
    parts, splitter.before = splitter.before, []
    yield from parts
    yield statement
