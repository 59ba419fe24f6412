"""The mutants of a file: every small change to its functions, and what each of them changes."""

import ast
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "clearloop"
_PACKAGES = ("expression", "runs", "diagnosis")
_FILES = (
    "evaluation/linearisation.py", "evaluation/stepping.py", "kernels/engine.py", "kernels/network.py",
    "surrogate/quality.py", "surrogate/trust.py",
)  # fmt: skip
_PLAIN = {"kernels/network.py": {"flatten", "fold_biases", "fold_networks"}}  # the others are compiled
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.MatMult: ast.Mult,
}  # fmt: skip
_CHANGED_THEMSELVES = (ast.Compare, ast.UnaryOp)  # `if not a == b` is the same mutant as `if a != b`
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
_DROPPED = ("abs", "sorted", "float", "set", "list", "tuple", "reversed")  # calls of one argument


class Mutant(NamedTuple):
    """One change to one file."""

    file: str  # such as expression/nodes.py
    line: int
    column: int
    number: int  # among the changes that begin at this place
    change: str  # in words
    first: int  # line of the function that has the change; 0 for a constant of the module
    last: int

    @property
    def name(self) -> str:
        """The name under which results are kept."""
        return f"{self.file}:{self.line}:{self.column}:{self.number}"


def files() -> list[str]:
    """The files that are tested: paths within the package."""
    found = [file for package in _PACKAGES for file in sorted((SOURCE / package).glob("*.py"))]
    names = [file.relative_to(SOURCE).as_posix() for file in found if file.name != "__init__.py"]
    return [*names, *_FILES]


def sample(count: int, seed: int) -> list[Mutant]:
    """The same mutants for the same seed, as long as the sources are the same."""
    every = [mutant for file in files() for mutant in mutants_of(file)]
    random.Random(seed).shuffle(every)  # noqa: S311 - nothing is secret
    return every[:count]


@cache
def mutants_of(file: str) -> tuple[Mutant, ...]:
    """All mutants of a file."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    functions = _functions(tree)
    found: list[Mutant] = []
    numbers: dict[tuple[int, int], int] = {}
    for node in _tested(tree, file):
        for change, _ in _changes(node):
            place = (node.lineno, node.col_offset)
            numbers[place] = numbers.get(place, -1) + 1
            within = [(first, last) for first, body, last in functions if body <= node.lineno <= last]
            found.append(Mutant(file, *place, numbers[place], change, *(within or [(0, 0)])[-1]))
    return tuple(found)


def mutated(mutant: Mutant) -> ast.Module:
    """The syntax tree of the file with the change."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    number = -1
    for node in _tested(tree, mutant.file):
        if (node.lineno, node.col_offset) != (mutant.line, mutant.column):
            continue
        for _, new in _changes(node):
            number += 1
            if number == mutant.number:
                _Replacing(node, ast.copy_location(new, node)).visit(tree)
                return ast.fix_missing_locations(tree)
    raise ValueError(f"there is no mutant {mutant.name}; the sources have changed")


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)


def _tested(tree: ast.Module, file: str) -> Iterator[ast.expr | ast.stmt]:
    """Every node in the body of a function, and of the values of the module's constants."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            if file not in _PLAIN or statement.name in _PLAIN[file]:
                yield from _nodes(statement, inside=False)
        elif constant_name(statement) and file not in _PLAIN and isinstance(statement, ast.Assign):
            yield from _nodes(statement.value, inside=True)


def constant_name(statement: ast.stmt) -> str:
    """The name of the constant that a statement of a module defines; nothing for any other statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) and target.id.isupper() else ""
    return ""


def _functions(tree: ast.Module) -> list[tuple[int, int, int]]:
    """Of every function, outer ones first: its first line, that of its body, and its last."""
    return [
        (
            min([node.lineno, *(one.lineno for one in node.decorator_list)]),
            node.body[0].lineno,
            node.end_lineno or 0,
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]


def _nodes(first: ast.AST, inside: bool) -> Iterator[ast.expr | ast.stmt]:
    """Every node within another, except texts for people: docstrings, annotations, messages."""
    waiting: list[tuple[ast.AST, bool]] = [(first, inside)]
    while waiting:
        node, inside = waiting.pop()
        if inside and isinstance(node, ast.expr | ast.stmt):
            yield node
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [(inner, True) for inner in node.body]
        elif isinstance(node, ast.Lambda):
            waiting.append((node.body, inside))
        elif isinstance(node, ast.AnnAssign):
            waiting += [(node.value, inside)] if node.value else []
        else:
            waiting += [(inner, inside) for inner in ast.iter_child_nodes(node)]


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """The changes to one node, each with its description."""
    for new in _new_nodes(node):
        before, after = (
            ast.unparse(one).splitlines()[0][:70] for one in (node, ast.copy_location(new, node))
        )
        yield f"{before}  →  {after}", new


def _new_nodes(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.Compare(left, ops, comparators):
            for place, operation in enumerate(ops):
                new = [*ops[:place], _COMPARISONS[type(operation)](), *ops[place + 1 :]]
                yield ast.Compare(left, new, comparators)
        case ast.BoolOp(operation, values):
            yield ast.BoolOp(ast.Or() if isinstance(operation, ast.And) else ast.And(), values)
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            yield ast.BinOp(left, _OPERATIONS[type(operation)](), right)
        case ast.AugAssign(target, operation, value) if type(operation) in _OPERATIONS:
            yield ast.AugAssign(target, _OPERATIONS[type(operation)](), value)
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield operand
        case ast.IfExp(test, body, otherwise) if not isinstance(test, _CHANGED_THEMSELVES):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, otherwise)
        case ast.If(test, body, otherwise) if not isinstance(test, _CHANGED_THEMSELVES):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, otherwise)
        case ast.Constant():
            yield from _constants(node)
        case ast.Call():
            yield from _calls(node)
        case ast.Return(value) if value is not None and not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(ast.Call()):
            yield ast.Pass()


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _constants(node: ast.Constant) -> Iterator[ast.expr]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield ast.Constant(node.value * 2 if node.value else 1.0)


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in _CALLS:
        yield ast.Call(ast.Name(_CALLS[function.id], ast.Load()), node.args, node.keywords)
    elif isinstance(function, ast.Attribute) and function.attr in _CALLS:
        yield ast.Call(
            ast.Attribute(function.value, _CALLS[function.attr], ast.Load()), node.args, node.keywords
        )
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if (
        name in _DROPPED
        and len(node.args) == 1
        and not isinstance(node.args[0], ast.Starred | ast.GeneratorExp)
    ):
        yield node.args[0]
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield ast.Call(function, node.args, node.keywords[:place] + node.keywords[place + 1 :])
