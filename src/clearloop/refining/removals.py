"""What can be left out of a controller, part by part: each gives a simpler controller of the same kind."""

from collections.abc import Iterator
from typing import NamedTuple

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear
from clearloop.controllers.fuzzy import Rule, RuleBase
from clearloop.controllers.pid import Loop, Loops
from clearloop.expression import OPERATIONS, Call, Expression, complexity, simplify, to_text
from clearloop.expression.nodes import postorder


class Removal(NamedTuple):
    controller: Controller
    what: str
    """in words"""


def removals(controller: Controller) -> list[Removal]:
    """All that remain a controller for every action, in the order of the file, none twice."""
    found: dict[str, Removal] = {}
    for removal in _of_kind(controller):
        if removal.controller.complexity < controller.complexity:
            found.setdefault(removal.controller.model_dump_json(), removal)
    return list(found.values())


def _of_kind(controller: Controller) -> Iterator[Removal]:
    if isinstance(controller, Equation):
        for action in controller.actions:
            for formula, what in _from_formula(controller.formula(action)):
                yield Removal(_with_output(controller, action, to_text(formula)), what)
    elif isinstance(controller, Linear):
        for action, row in controller.gains.items():
            for name in row if len(row) > 1 else ():
                gains = {**controller.gains, action: {n: gain for n, gain in row.items() if n != name}}
                yield Removal(controller.model_copy(update={"gains": gains}), f"drop {row[name]:g}*{name}")
    elif isinstance(controller, PID):
        for action, loops in controller.outputs.items():
            for output, what in _from_loops(loops):
                yield Removal(_with_output(controller, action, output), what)
    elif isinstance(controller, Fuzzy):
        for action, base in controller.outputs.items():
            for rules, what in _from_rules(base):
                changed = base.model_copy(update={"rules": rules})
                yield Removal(_with_output(controller, action, changed), what)


def _with_output(
    controller: Equation | PID | Fuzzy, action: str, output: str | Loops | RuleBase
) -> Controller:
    return controller.model_copy(update={"outputs": {**controller.outputs, action: output}})


def _from_formula(formula: Expression) -> Iterator[tuple[Expression, str]]:
    """Every call gives way to one of its arguments: a sum to a term, a product to a factor, if to a case."""
    for node in postorder(formula):
        if not isinstance(node, Call):
            continue
        for number, kept in enumerate(node.arguments):
            if kept.kind != node.kind:
                continue
            shorter = Call(OPERATIONS["neg"], (kept,)) if node.operation.name == "sub" and number else kept
            found = simplify(_replaced(formula, node, shorter))
            if complexity(found) < complexity(formula):
                yield found, _said(node, number)


def _replaced(formula: Expression, old: Expression, new: Expression) -> Expression:
    """With one node, which is this very object, replaced."""
    if formula is old:
        return new
    if not isinstance(formula, Call):
        return formula
    parts = tuple(_replaced(argument, old, new) for argument in formula.arguments)
    if all(part is argument for part, argument in zip(parts, formula.arguments, strict=True)):
        return formula
    return Call(formula.operation, parts)


def _said(node: Call, kept: int) -> str:
    others = [to_text(part) for number, part in enumerate(node.arguments) if number != kept]
    match node.operation.name:
        case "add" | "sub":
            return f"drop the term {others[0]}"
        case "mul":
            return f"drop the factor {others[0]}"
        case "div":
            return f"drop the divisor {others[0]}" if kept == 0 else f"drop the dividend {others[0]}"
    return f"{to_text(node)} becomes {to_text(node.arguments[kept])}"


def _from_loops(output: Loops) -> Iterator[tuple[Loops, str]]:
    """The bias, whole loops, and single gains of them."""
    if output.bias:
        yield output.model_copy(update={"bias": 0.0}), f"drop the bias {output.bias:g}"
    for number, loop in enumerate(output.loops):
        others = output.loops[:number], output.loops[number + 1 :]
        if len(output.loops) > 1:
            kept = (*others[0], *others[1])
            yield output.model_copy(update={"loops": kept}), f"drop the loop on {loop.input}"
        for gain in ("kp", "ki", "kd"):
            lesser = loop.model_copy(update={gain: 0.0} | ({"window": 1} if gain == "ki" else {}))
            if getattr(loop, gain) and _acts(lesser):
                kept = (*others[0], lesser, *others[1])
                yield output.model_copy(update={"loops": kept}), f"drop {gain} of the loop on {loop.input}"


def _acts(loop: Loop) -> bool:
    return bool(loop.kp or loop.ki or loop.kd)


def _from_rules(base: RuleBase) -> Iterator[tuple[tuple[Rule, ...], str]]:
    """Rules and premises; from a rule that has a mirror image, the same is taken from that, too."""
    for number, rule in enumerate(base.rules):
        twin = _mirror(base.rules, number)
        if twin is not None and twin < number:
            continue
        pair = [number] if twin is None else [number, twin]
        names = f"rule {number + 1}" if twin is None else f"rules {number + 1} and {twin + 1}"
        if len(base.rules) > len(pair):
            yield tuple(r for n, r in enumerate(base.rules) if n not in pair), f"drop {names}"
        for name in rule.premise if len(rule.premise) > 1 else ():
            rules = tuple(_without(r, name) if n in pair else r for n, r in enumerate(base.rules))
            yield rules, f"{names} no longer look at {name}" if twin else f"{names} no longer looks at {name}"


def _without(rule: Rule, name: str) -> Rule:
    return rule.model_copy(update={"premise": {n: term for n, term in rule.premise.items() if n != name}})


def _mirror(rules: tuple[Rule, ...], number: int) -> int | None:
    """The other rule that says the same of the negated state and asks for the negated action."""
    mine = rules[number]
    for other, rule in enumerate(rules):
        same = rule.premise.keys() == mine.premise.keys() and all(
            (-term.center, term.width) == (rule.premise[name].center, rule.premise[name].width)
            for name, term in mine.premise.items()
        )
        if other != number and same and rule.then == -mine.then:
            return other
    return None
