"""Fuzzy controllers: rules with Gaussian membership functions (sec. 3.6 of the paper, Eqs. 14–16)."""

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, Strict, model_validator

from clearloop.controllers.controller import Coefficient, Controller, Known, read_variable
from clearloop.controllers.memory import Memory
from clearloop.controllers.routine import Fill, Mean, Scope, call, difference, times
from clearloop.controllers.views import TIMES, DrawnRule, Note, Part, variable_words
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Expression, Number, Variable, to_latex
from clearloop.expression.nodes import READ_LIMIT
from clearloop.expression.pieces import Piece, Pieces, aligned, latex_number
from clearloop.kernels.layout import FUZZY
from clearloop.numbers import number, quantity, signed
from clearloop.programs import Features
from clearloop.task.tables import Table, expecting

# If widths were smaller, squares of distances over squares of widths would overflow in single precision.
NARROWEST = 1e-6
Width = Annotated[
    float,
    Strict(),
    Field(ge=NARROWEST, le=READ_LIMIT, allow_inf_nan=False),
    expecting(f"a number from {NARROWEST:g} to {READ_LIMIT:g}"),
]


class Membership(Table):
    """A Gaussian membership function exp(−(x − center)² / (2 width²)), in the unit of its state."""

    center: Coefficient
    width: Width


class Rule(Table):
    """A rule: the membership functions of its premise, which are multiplied, and its output."""

    premise: Annotated[dict[str, Membership], Field(alias="if", min_length=1)]
    then: Coefficient


class RuleBase(Table):
    """The rules of an action: scale · tanh(alpha · mean output of the rules), Eqs. (15) and (16)."""

    scale: Coefficient
    alpha: Coefficient
    rules: Annotated[tuple[Rule, ...], Field(min_length=1, max_length=1000)]

    def pull(self, rule: Rule) -> float:
        """Return the action where only this rule applies, Eq. (16)."""
        return self.scale * math.tanh(self.alpha * rule.then)


class Fuzzy(Controller):
    """A controller that chooses each action by fuzzy rules; `outputs` maps actions to rule bases."""

    policy: ClassVar[int | None] = FUZZY
    kind: Literal["fuzzy"] = "fuzzy"
    outputs: Annotated[dict[str, RuleBase], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_no_input_twice(self) -> Self:
        seen = set()
        for place, variable in self.variables():
            # `rho`, `rho[t]` and `rho.error` are the same thing here.
            feature = place, variable.name, variable.part == "setpoint", variable.lag or 0
            if feature in seen:
                raise ClearloopError(f"{place}: {quoted(str(variable))} occurs twice in one rule")
            seen.add(feature)
        return self

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, base in self.outputs.items():
            for index, rule in enumerate(base.rules):
                place = f"outputs.{action}.rules[{index}].if"
                for name in rule.premise:
                    yield place, read_variable(name, place, known)

    @property
    def complexity(self) -> int:
        """The complexity: 3 for each membership function, 1 for each rule's output, 1 for alpha."""
        return sum(
            1 + sum(1 + 3 * len(rule.premise) for rule in base.rules) for base in self.outputs.values()
        )

    @property
    def summary(self) -> str:
        return "; ".join(_rule_text(rule) for base in self.outputs.values() for rule in base.rules)

    def words(self) -> Iterator[str]:
        for action, base in self.outputs.items():
            for place, rule in enumerate(base.rules, 1):
                pull = f"{base.pull(rule):+.3g}{self.unit(action)}"
                yield f"Rule {place}: if {self._premise_words(rule)}"
                yield f"        then {action} {pull}   (output {rule.then:+.4g})"
            mean = "mean output, weighted by how well the rules fit"
            yield f"{action} = {base.scale:g} * tanh({base.alpha:.4g} * {mean})"
        yield from self.limit_words()
        yield from self.setpoint_words()

    def _premise_words(self, rule: Rule) -> str:
        return " and ".join(
            f"{variable} is about {m.center:.4g} (± {m.width:.3g}{self.unit(variable.name)})"
            for variable, m in _terms(rule)
        )

    def respond(self, memory: Memory) -> dict[str, float]:
        answer = {}
        for action, base in self.outputs.items():
            exponents = np.array([_exponent(rule, memory) for rule in base.rules])
            memberships = np.exp(exponents - exponents.max())  # the largest is 1: exact when all underflow
            mean = memberships @ np.array([rule.then for rule in base.rules]) / memberships.sum()
            answer[action] = base.scale * math.tanh(base.alpha * mean)
        return answer

    def sizes(self, features: Features) -> list[int]:
        return [len(self.outputs[action].rules) for action in features.actions]

    def numbers(self, features: Features) -> list[float]:
        numbers = []
        for action in features.actions:
            base = self.outputs[action]
            numbers += [base.scale, base.alpha]
            for rule in base.rules:
                row = [0.0] * (2 * features.count)
                for variable, m in _terms(rule):
                    slot = features.slot(variable)
                    row[2 * slot : 2 * slot + 2] = m.center, -1 / (2 * m.width**2)
                numbers += [rule.then, *row]
        return numbers

    def lower(self, scope: Scope) -> dict[str, Expression]:
        return {action: _lowered(action, base, scope) for action, base in self.outputs.items()}

    def equations(self) -> tuple[Pieces, ...]:
        return (*(_equation(action, base) for action, base in self.outputs.items()), (_MEMBERSHIP,))

    def latex_rows(self) -> Iterator[str]:
        for action, base in self.outputs.items():
            yield from _latex_table(base)
            mean = "\\frac{\\sum_i m_i o_i}{\\sum_i m_i}"
            fit = "\\exp\\left(-\\frac{(s_j - c_{ij})^2}{2 w_{ij}^2}\\right)"
            driven = f"{latex_number(base.scale)} \\tanh\\left({latex_number(base.alpha)} {mean}\\right)"
            yield aligned([(to_latex(Variable(action)), driven), ("m_i", f"\\prod_j {fit}")])

    def parts(self, action: str) -> Iterator[Part]:
        base, unit = self.outputs[action], self.unit(action).strip()
        for place, rule in enumerate(base.rules, 1):
            premise = " and ".join(
                f"{variable_words(variable)} is about {number(m.center)} ± "
                + quantity(m.width, self.unit(variable.name).strip())
                for variable, m in _terms(rule)
            )
            does = f"if {premise}, then {action} {signed(base.pull(rule))} {unit}"
            yield Note(f"rule {place}", does.rstrip())
        mean = f"{number(base.alpha)} {TIMES} the mean output of the rules, weighted by how well each fits"
        yield Note("together", f"{quantity(base.scale, unit)} {TIMES} tanh of {mean}")

    def rules(self) -> Iterator[DrawnRule]:
        for action, base in self.outputs.items():
            for place, rule in enumerate(base.rules, 1):
                premise = {
                    Variable(v.name, "setpoint" if v.part == "setpoint" else "value", v.lag or None): m
                    for v, m in _terms(rule)
                }
                spans = {feature: (m.center, m.width) for feature, m in premise.items()}
                yield DrawnRule(action, place, spans, base.pull(rule))

    def simpler(self) -> Iterator[tuple[Self, str]]:
        for action, base in self.outputs.items():
            for rules, what in _fewer(base.rules):
                yield self._with_output(action, base.model_copy(update={"rules": rules})), what


def _terms(rule: Rule) -> Iterator[tuple[Variable, Membership]]:
    for name, membership in rule.premise.items():
        yield read_variable(name), membership


def _exponent(rule: Rule, memory: Memory) -> float:
    return -sum((m.center - memory.error(v)) ** 2 / (2 * m.width**2) for v, m in _terms(rule))


def _rule_text(rule: Rule) -> str:
    premise = " and ".join(f"{variable}~{m.center:.3g}" for variable, m in _terms(rule))
    return f"if {premise} then {rule.then:+.3g}"


# The controller as a routine.


def _lowered(action: str, base: RuleBase, scope: Scope) -> Expression:
    fits = tuple(_fit(f"{action}_rule_{place}", rule, scope) for place, rule in enumerate(base.rules, 1))
    source, mean = scope.fresh(f"{action}_fits"), scope.fresh(f"{action}_mean")
    scope.body.append(Fill(source, fits))
    scope.body.append(Mean(mean, source, tuple(rule.then for rule in base.rules)))
    if not (base.scale and base.alpha):
        return Number(0.0)
    return times(base.scale, call("tanh", times(base.alpha, mean)))


def _fit(name: str, rule: Rule, scope: Scope) -> Expression:
    """Return the logarithm of the rule's membership, −Σ (x − center)² / (2 width²)."""
    terms = []
    for variable, m in _terms(rule):
        square = call("pow", difference(scope.read(variable), m.center), Number(2.0))
        terms.append((False, call("div", square, Number(2 * m.width**2))))
    return scope.let(name, call("neg", scope.total(name, terms)))


# The controller as equations.


def _equation(action: str, base: RuleBase) -> Pieces:
    size, steep = f"{base.scale:.4g}", f"{base.alpha:.4g}"
    return (
        Piece.name(action),
        Piece(
            rf"{size} \, \tanh\left({steep} \, \frac{{\sum_i m_i \, o_i}}{{\sum_i m_i}}\right),",
            f"{size} thin tanh ({steep} thin frac(sum_i m_i thin o_i, sum_i m_i)),",
            f"{size} tanh({steep} sum(m o)/sum(m)),",
        ),
    )


_MEMBERSHIP = Piece(
    r"m_i = \exp\left(-\sum_j \frac{(s_j - c_{ij})^2}{2 \, w_{ij}^2}\right)",
    "m_i = exp (-sum_j frac((s_j - c_(i j))^2, 2 thin w_(i j)^2))",
    "m = exp(-sum((s - c)**2/(2 w**2)))",
)


def _latex_table(base: RuleBase) -> Iterator[str]:
    """Yield a table with a row for each rule and a column for each state, with centre ± width."""
    states = list(dict.fromkeys(text for rule in base.rules for text in rule.premise))
    columns = [f"${to_latex(read_variable(text))}$" for text in states]
    yield f"\\begin{{tabular}}{{r{'c' * len(states)}r}}\n  \\toprule"
    yield "  Rule & " + " & ".join(columns) + " & Output \\\\\n  \\midrule"
    for place, rule in enumerate(base.rules, 1):
        cells = []
        for text in states:
            m = rule.premise.get(text)
            cells.append(f"${latex_number(m.center)} \\pm {latex_number(m.width)}$" if m else "")
        yield f"  {place} & {' & '.join(cells)} & ${latex_number(rule.then)}$ \\\\"
    yield "  \\bottomrule\n\\end{tabular}"


# The controller with fewer rules and premises.


def _fewer(rules: tuple[Rule, ...]) -> Iterator[tuple[tuple[Rule, ...], str]]:
    """Yield fewer rules or premises; two rules that mirror each other lose the same."""
    for place, rule in enumerate(rules):
        twin = _mirror(rules, place)
        if twin is not None and twin < place:
            continue
        pair = [place] if twin is None else [place, twin]
        names = f"rule {place + 1}" if twin is None else f"rules {place + 1} and {twin + 1}"
        if len(rules) > len(pair):
            yield tuple(r for n, r in enumerate(rules) if n not in pair), f"drop {names}"
        for name in rule.premise if len(rule.premise) > 1 else ():
            fewer = tuple(_without(r, name) if n in pair else r for n, r in enumerate(rules))
            yield fewer, f"{names} no longer look at {name}" if twin else f"{names} no longer looks at {name}"


def _without(rule: Rule, name: str) -> Rule:
    return rule.model_copy(update={"premise": {n: term for n, term in rule.premise.items() if n != name}})


def _mirror(rules: tuple[Rule, ...], place: int) -> int | None:
    """Return the number of the rule that asks for the negated action in the negated state, if any."""
    mine = rules[place]
    for other, rule in enumerate(rules):
        same = rule.premise.keys() == mine.premise.keys() and all(
            (-term.center, term.width) == (rule.premise[name].center, rule.premise[name].width)
            for name, term in mine.premise.items()
        )
        if other != place and same and rule.then == -mine.then:
            return other
    return None
