"""Execution of Structured Text: expressions and statements become functions of a frame of variables."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clearloop.errors import ClearloopError
from clearloop.verification.st.parsing import (
    Assignment,
    Binary,
    Element,
    For,
    FunctionCall,
    Identifier,
    If,
    Invocation,
    Literal,
    Member,
    ProgramUnit,
    Return,
    StExpression,
    StructuredTextError,
    StStatement,
    Unary,
    Value,
    VarDeclaration,
    parse_st,
)
from clearloop.verification.st.typing import (
    COMPARISON_FUNCTIONS,
    INTEGERS,
    LOGIC_FUNCTIONS,
    REALS,
    Function,
    Inference,
    TypedVariable,
    common_type,
    expect_type,
    fitting,
    settled,
    standard,
)

Frame = dict[str, Any]
"""The values of a unit's variables: numbers, lists for arrays, instances for function blocks."""
Evaluate = Callable[[Frame], Any]

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class Compiler(Inference):
    """A compiler of expressions, in which every result is made to fit its type."""

    def compile(self, expression: StExpression, wanted: str) -> Evaluate:
        """Return an expression as a function that gives a value of type `wanted`."""
        found = self.type_of(expression)
        if common_type(found, wanted, expression.line) != wanted:
            raise StructuredTextError(f"expected {wanted}, found {found}", expression.line)
        return self._build(expression, wanted)

    def condition(self, expression: StExpression) -> Evaluate:
        """Return a condition as a function."""
        return self.compile(expression, "BOOL")

    def _build(self, node: StExpression, wanted: str) -> Evaluate:
        match node:
            case Literal():
                value = fitting(wanted, node.line)(node.value)
                return lambda _: value
            case Identifier():
                return self._read(node)
            case Element():
                return self._read_element(node)
            case Member(instance=instance, name=name):
                return lambda frame: frame[instance].frame[name]
            case Unary():
                operand = self._build(node.operand, wanted)
                if node.operator == "NOT":
                    return lambda frame: not operand(frame)
                return lambda frame: -operand(frame)
            case Binary():
                return self._binary(node, wanted)
            case FunctionCall():
                return self._call(node, wanted)

    def _read(self, node: Identifier) -> Evaluate:
        name = node.name
        if self.variables[name].kept:
            return lambda frame: frame[name]
        refusal = StructuredTextError(f"{name} is read before it has a value", node.line)

        def read(frame: Frame) -> Any:
            if frame[name] is None:
                raise refusal
            return frame[name]

        return read

    def position(self, node: Element) -> Evaluate:
        """Return the function that gives the place of an element in the list of its array."""
        bounds = self.variables[node.name].bounds
        if bounds is None:
            raise StructuredTextError(f"{node.name} is not an array", node.line)
        first, last = bounds
        index = self.compile(node.index, settled(self.type_of(node.index)))
        expect_type(settled(self.type_of(node.index)), INTEGERS, node.line)
        name, line = node.name, node.line

        def position(frame: Frame) -> int:
            at: int = index(frame)
            if not first <= at <= last:
                raise StructuredTextError(f"{name}[{at}] is outside {first}..{last}", line)
            return at - first

        return position

    def _read_element(self, node: Element) -> Evaluate:
        position, name = self.position(node), node.name
        return lambda frame: frame[name][position(frame)]

    def _binary(self, node: Binary, wanted: str) -> Evaluate:
        # Both operands are always computed: the standard does not promise that AND and OR stop early.
        type_ = settled(self.operands(node)) if node.operator in COMPARISON_FUNCTIONS else wanted
        left, right = self._build(node.left, type_), self._build(node.right, type_)
        direct = COMPARISON_FUNCTIONS.get(node.operator) or LOGIC_FUNCTIONS.get(node.operator)
        if direct:
            return lambda frame: direct(left(frame), right(frame))
        meaning = _ARITHMETIC.get(node.operator) or _division(node, type_ in INTEGERS)
        fit = fitting(type_, node.line)
        return lambda frame: fit(meaning(left(frame), right(frame)))

    def _call(self, node: FunctionCall, wanted: str) -> Evaluate:
        function = self.function(node)
        # Literals among literals take the type that is wanted.
        generic = function.result in ("ANY_REAL", "ANY_INT")
        types = [wanted if generic and t == function.result else settled(t) for t in function.arguments]
        arguments = [
            self.compile(argument, type_) for argument, type_ in zip(node.arguments, types, strict=True)
        ]
        fit, call = fitting(wanted, node.line), function.call
        return lambda frame: fit(call(*[argument(frame) for argument in arguments]))


def _division(node: Binary, whole: bool) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            raise StructuredTextError("division by zero", node.line)
        if not whole:
            return a / b
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return a - b * quotient if node.operator == "MOD" else quotient

    return divide


Execute = Callable[[Frame], bool]
"""A statement as a function that changes a frame and returns whether the unit returns."""


class Statements:
    """A compiler of statements.

    Args:
        compiler: The compiler of their expressions.
    """

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler

    def all(self, statements: tuple[StStatement, ...]) -> list[Execute]:
        """Return statements as functions."""
        return [self._one(statement) for statement in statements]

    def _one(self, statement: StStatement) -> Execute:
        match statement:
            case Assignment():
                return self._assignment(statement)
            case If():
                return self._if(statement)
            case For():
                return self._for(statement)
            case Invocation():
                return self._invocation(statement)
            case Return():
                return lambda _: True

    def _invocation(self, node: Invocation) -> Execute:
        inputs = [
            (name, self.compiler.compile(value, self.compiler.member(node.instance, name, node.line)))
            for name, value in node.inputs
        ]

        def invoke(frame: Frame) -> bool:
            frame[node.instance].step({name: value(frame) for name, value in inputs})
            return False

        return invoke

    def _assignment(self, node: Assignment) -> Execute:
        name = node.target.name
        if not self.compiler.variable(name, node.line).writable:
            raise StructuredTextError(f"{name} cannot be assigned to", node.line)
        value = self.compiler.compile(node.value, self.compiler.type_of(node.target))
        if isinstance(node.target, Element):
            position = self.compiler.position(node.target)

            def assign_element(frame: Frame) -> bool:
                frame[name][position(frame)] = value(frame)
                return False

            return assign_element

        def assign(frame: Frame) -> bool:
            frame[name] = value(frame)
            return False

        return assign

    def _if(self, node: If) -> Execute:
        branches = [(self.compiler.condition(test), self.all(body)) for test, body in node.branches]
        otherwise = self.all(node.otherwise)

        def run(frame: Frame) -> bool:
            chosen = next((body for test, body in branches if test(frame)), otherwise)
            return any(statement(frame) for statement in chosen)

        return run

    def _for(self, node: For) -> Execute:
        name = node.variable.name
        kind = expect_type(self.compiler.type_of(node.variable), INTEGERS, node.line)
        first, last, step = (self.compiler.compile(one, kind) for one in (node.first, node.last, node.step))
        body = self.all(node.body)
        fit = fitting(kind, node.line)

        def run(frame: Frame) -> bool:
            frame[name], end, stride = first(frame), last(frame), step(frame)
            if stride == 0:
                raise StructuredTextError("FOR with a step of 0", node.line)
            while (frame[name] <= end) if stride > 0 else (frame[name] >= end):
                if any(statement(frame) for statement in body):
                    return True
                frame[name] = fit(frame[name] + stride)
            return False

        return run


class BlockType(NamedTuple):
    """A function block or program, of which instances are made.

    Attributes:
        unit: The declaration.
        body: The statements.
        kinds: The function blocks that it may have instances of.
    """

    unit: ProgramUnit
    body: list[Execute]
    kinds: "Kinds"


Kinds = dict[str, BlockType]


class Instance:
    """An instance of a function block, whose variables stay from one call to the next.

    Args:
        kind: The function block.
    """

    def __init__(self, kind: BlockType) -> None:
        self.kind = kind
        self.frame: Frame = {one.name: initial(one, kind.kinds) for one in kind.unit.declarations}
        self._inputs = {one.name: one for one in kind.unit.section("VAR_INPUT")}

    def step(self, inputs: Mapping[str, Value]) -> None:
        """Call the block once; an input that is not given keeps its value.

        What comes from outside may be NaN or infinite; the block may compare it, but not compute with it.
        """
        for one in self.kind.unit.section("VAR_TEMP"):
            self.frame[one.name] = initial(one, {})
        for name, value in inputs.items():
            one = self._input(name)
            outside = one.type in REALS and not math.isfinite(value)
            self.frame[one.name] = value if outside else fitting(one.type, one.line)(value)
        for statement in self.kind.body:
            if statement(self.frame):
                break

    def _input(self, name: str) -> VarDeclaration:
        if name.upper() not in self._inputs:
            there = ", ".join(one.spelling for one in self._inputs.values())
            raise ClearloopError(f"{self.kind.unit.spelling} has no input {name}; it has: {there}")
        return self._inputs[name.upper()]


def initial(one: VarDeclaration, kinds: Kinds) -> Any:
    """Return the initial value of a variable; None: it has none and must be assigned before it is read."""
    if one.type in kinds:
        return Instance(kinds[one.type])
    fit = fitting(one.type, one.line)
    for literal in one.initial:
        common_type(literal.type, one.type, literal.line)
    values = [fit(literal.value) for literal in one.initial]
    zero: Value = False if one.type == "BOOL" else 0 if one.type in INTEGERS else 0.0
    if one.bounds:
        return values or [zero] * (one.bounds[1] - one.bounds[0] + 1)
    if not values and not _kept(one):
        return None
    return values[0] if values else zero


def _kept(one: VarDeclaration) -> bool:
    return one.section != "VAR_TEMP" or bool(one.initial) or one.bounds is not None


def compiled(unit: ProgramUnit, functions: Mapping[str, Function], kinds: Kinds) -> list[Execute]:
    """Return the statements of a unit as functions."""
    variables = _variables(unit)
    if unit.result:
        variables[unit.name] = TypedVariable(unit.result, None, True, False)
    for name in variables:
        if (name in functions and name != unit.name) or name in kinds:
            raise StructuredTextError(f"{name} is also the name of a function or a function block", unit.line)
    blocks = {name: _seen_from_outside(kind.unit) for name, kind in kinds.items()}
    return Statements(Compiler(variables, functions, blocks)).all(unit.body)


def _seen_from_outside(unit: ProgramUnit) -> dict[str, str]:
    return {one.name: one.type for one in (*unit.section("VAR_INPUT"), *unit.section("VAR_OUTPUT"))}


def _variables(unit: ProgramUnit) -> dict[str, TypedVariable]:
    found: dict[str, TypedVariable] = {}
    for one in unit.declarations:
        if one.name in found or one.name == unit.name:
            raise StructuredTextError(f"{one.spelling} is declared twice", one.line)
        writable = one.section not in ("VAR_INPUT", "VAR CONSTANT")
        found[one.name] = TypedVariable(one.type, one.bounds, writable, _kept(one))
    return found


class Block:
    """An instance of the last function block or program of a text, run as a PLC would run it.

    Everything that a PLC might stop at is an error with its line: a division by zero, an overflow, a root of
    a negative number, an index outside an array, a variable that is read before it has a value.

    Args:
        text: Structured Text, of the subset that is exported.
    """

    def __init__(self, text: str) -> None:
        functions: dict[str, Function] = {}
        kinds: dict[str, BlockType] = {}
        last = None
        for unit in parse_st(text):
            if unit.name in functions or unit.name in kinds or _is_standard(unit.name):
                raise StructuredTextError(
                    f"{unit.spelling} is declared twice, or is the name of a standard function", unit.line
                )
            if unit.result:
                functions[unit.name] = _function(unit, functions)
            else:
                last = kinds[unit.name] = BlockType(unit, compiled(unit, functions, kinds), dict(kinds))
        if last is None:
            raise ClearloopError("the text has no FUNCTION_BLOCK")
        self._kind = last
        self._instance = Instance(last)
        self.inputs = tuple(one.spelling for one in last.unit.section("VAR_INPUT"))
        self.outputs = tuple(one.spelling for one in last.unit.section("VAR_OUTPUT"))

    @property
    def name(self) -> str:
        """The name of the function block."""
        return self._kind.unit.spelling

    def reset(self) -> None:
        """Restore the initial values, as after a cold start."""
        self._instance = Instance(self._kind)

    def step(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Call the block once and return its outputs; an input that is not given keeps its value."""
        self._instance.step(inputs)
        return {name: self._instance.frame[name.upper()] for name in self.outputs}

    def value(self, name: str) -> Any:
        """Return the value of any variable, as a debugger would show it."""
        return self._instance.frame[name.upper()]


def _is_standard(name: str) -> bool:
    try:
        return standard(name, (), 0) is not None
    except StructuredTextError:  # a standard function that was called without arguments
        return True


def _function(unit: ProgramUnit, functions: Mapping[str, Function]) -> Function:
    body = compiled(unit, functions, {})
    inputs, kinds = unit.section("VAR_INPUT"), Kinds()

    def call(*arguments: Value) -> Value:
        frame: Frame = {one.name: initial(one, kinds) for one in unit.declarations}
        frame[unit.name] = None
        frame.update(zip((one.name for one in inputs), arguments, strict=True))
        for statement in body:
            if statement(frame):
                break
        if frame[unit.name] is None:
            raise StructuredTextError(f"{unit.spelling} returns without a value", unit.line)
        result: Value = frame[unit.name]
        return result

    return Function(tuple(one.type for one in inputs), unit.result or "", call)
