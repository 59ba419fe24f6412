"""Simpler controllers that cost no more than allowed: fewer digits, fewer parts. See `docs/refine.md`."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear, encode
from clearloop.controllers.fuzzy import Rule, RuleBase
from clearloop.controllers.pid import Loop, Loops
from clearloop.errors import ClearloopError
from clearloop.evaluation.rollouts import make_job, make_system, window
from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    complexity,
    fold,
    simplify,
    to_text,
)
from clearloop.expression.nodes import postorder
from clearloop.kernels.engine import roll_out
from clearloop.numbers import significant
from clearloop.plants.scenarios import Scenarios
from clearloop.programs import Features
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# The constants of a controller file, wherever they stand, and files with other constants.
#
# Constants of the same size change together: of rules that mirror each other, both sides keep doing so.

MOST_DIGITS = 6  # that are tried, before a constant is left as it is


def sizes(controller: Controller) -> tuple[float, ...]:
    """Of all constants, in the order of the file."""
    found: dict[float, None] = {}

    def look(value: float) -> float:
        found[abs(value)] = None
        return value

    with_constants(controller, look)
    return tuple(size for size in found if size)


def digits_of(value: float) -> int:
    """Significant ones, of the shortest text that means this value."""
    mantissa = f"{value!r}".lower().partition("e")[0]
    return len(mantissa.replace(".", "").strip("-0")) or 1


def with_size(controller: Controller, old: float, new: float) -> Controller:
    return with_constants(controller, lambda value: math.copysign(new, value) if abs(value) == old else value)


def with_constants(controller: Controller, change: Callable[[float], float]) -> Controller:
    """The same controller with each constant changed; names, windows and limits stay."""
    if isinstance(controller, Equation):
        outputs = {action: _formula(controller.formula(action), change) for action in controller.actions}
        return controller.model_copy(update={"outputs": outputs})
    table = controller.model_dump(mode="python", by_alias=True)
    table[controller.chosen_in] = _changed(table[controller.chosen_in], change)
    return type(controller).model_validate(table)


def _formula(formula: Expression, change: Callable[[float], float]) -> str:
    changed = fold(
        formula,
        lambda leaf: Number(change(leaf.value)) if isinstance(leaf, Number) else leaf,
        lambda operation, parts: Call(operation, tuple(parts)),
    )
    return to_text(simplify(changed))


def _changed(value: Any, change: Callable[[float], float]) -> Any:
    """Of tables and lists: every float; whole numbers count something."""
    if isinstance(value, dict):
        return {key: _changed(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_changed(item, change) for item in value)
    return change(value) if isinstance(value, float) else value


def short(value: float) -> str:
    """For people: at most as many digits as are tried."""
    return f"{value:.{MOST_DIGITS}g}"


# What can be left out of a controller, part by part: each gives a simpler controller of the same kind.


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


# Digits and parts of a controller, taken away one by one: always what costs least, as far as is allowed.
#
# All candidates of a step are scored at once. What is allowed is counted from the best that was seen,
# beginning with the controller as it was given: many small steps cannot add up to more, and what a step
# gains is not given away by the next.

Score = Callable[[Sequence[Controller]], Floats]
"""Penalties [P, N] of controllers, from the same starts."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    digits: int = 2
    """no constant is rounded to fewer significant ones"""
    drop: bool = False
    """whether parts may be left out"""
    tolerance: float = 0.01
    """share of the penalty that all steps together may add"""

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise ClearloopError(f"--round {self.digits}: expected from 1 to {MOST_DIGITS} digits")
        if not 0 <= self.tolerance < 1:
            raise ClearloopError(f"--tolerance {self.tolerance:g}: expected a share such as 0.01, below 1")


@dataclass(frozen=True)
class Step:
    what: str
    """in words"""
    penalty: float
    """after it"""
    complexity: int


@dataclass(frozen=True, eq=False)
class Refinement:
    controller: Controller
    before: float
    """the penalty of what was given"""
    steps: tuple[Step, ...]
    extra: float
    """what the refined one costs more, mean over the starts"""
    extra_error: float
    """its standard error: the starts are paired"""

    @property
    def after(self) -> float:
        return self.before + self.extra

    def to_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "extra": {"mean": self.extra, "se": self.extra_error},
            "steps": [vars(step) for step in self.steps],
        }


def refine(controller: Controller, score: Score, settings: Settings) -> Refinement:
    """Parts first, because what is left out need not be rounded."""
    if not isinstance(controller, Equation | Linear | PID | Fuzzy):
        raise ClearloopError(
            f"a controller of the kind {controller.kind} has no parts that a person reads:"
            " refine an equation, a linear, a pid or a fuzzy one"
        )
    search = _Search(controller, score, settings.tolerance)
    if settings.drop:
        while search.take(removals(search.controller)):
            pass
    for digits in range(settings.digits, MOST_DIGITS + 1):
        while search.take(_rounded(search.controller, digits)):
            pass
    return search.result()


def _rounded(controller: Controller, digits: int) -> list[Removal]:
    """Each constant that has more digits, alone."""
    changes = [(size, significant(size, digits)) for size in sizes(controller) if digits_of(size) > digits]
    return [
        Removal(with_size(controller, size, new), f"{short(size)} becomes {short(new)}")
        for size, new in changes
        if new  # nothing is rounded away
    ]


class _Search:
    def __init__(self, controller: Controller, score: Score, tolerance: float) -> None:
        self.controller, self._score = controller, score
        self._first = self._last = score([controller])[0]
        self._best, self._tolerance = float(self._first.mean()), tolerance
        self._steps: list[Step] = []

    def take(self, candidates: Sequence[Removal]) -> bool:
        """The cheapest, if it is allowed; of equally cheap ones the simplest, then the first."""
        if not candidates:
            return False
        scores = self._score([candidate.controller for candidate in candidates])
        costs = scores.mean(axis=1)
        order = sorted(range(len(candidates)), key=lambda n: (costs[n], candidates[n].controller.complexity))
        best = order[0]
        if not costs[best] <= self._best + self._tolerance * abs(self._best):
            return False
        self._best = min(self._best, float(costs[best]))
        self.controller, self._last = candidates[best].controller, scores[best]
        self._steps.append(Step(candidates[best].what, float(costs[best]), self.controller.complexity))
        return True

    def result(self) -> Refinement:
        extra = self._last - self._first
        error = float(extra.std(ddof=1) / np.sqrt(extra.size)) if extra.size > 1 else 0.0
        return Refinement(
            self.controller, float(self._first.mean()), tuple(self._steps), float(extra.mean()), error
        )


__all__ = ["Refinement", "Settings", "Step", "refine"]


# What controllers of one kind cost, from the same starts on the same models: a population in one call.


class Judge:
    """Penalties on members of a surrogate, in double precision."""

    def __init__(self, controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> None:
        """By the members that judge, for controllers that look back no farther than this one."""
        self.task, self._rows = task, window(task, [controller])
        self._features = Features(task.state_names, task.action_names, self._rows)
        self._system = make_system(task, surrogate, self._rows, surrogate.judge_members)
        self._job = make_job(task, controller, starts, surrogate, self._rows)

    def __call__(self, controllers: Sequence[Controller]) -> Floats:
        """[P, N] of each from each start, means over members. The engine takes those of one shape at once."""
        shapes = [tuple(controller.sizes(self._features)) for controller in controllers]
        penalties = np.zeros((len(controllers), len(self._job.starts)))
        for shape in dict.fromkeys(shapes):
            places = [place for place, other in enumerate(shapes) if other == shape]
            policies = encode([controllers[place] for place in places], self.task, history=self._rows)
            penalties[places] = -roll_out(policies, self._system, self._job).returns.mean(axis=0)
        return penalties
