"""What each part of a controller does, in words: terms of formulas, gains, loops, rules."""

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from clearloop.controllers import PID, Controller, Equation, Fuzzy, Linear
from clearloop.controllers.controller import read_variable
from clearloop.controllers.fuzzy import Rule
from clearloop.controllers.pid import Loop
from clearloop.diagnosis.terms import Experience, Part, Term, split_terms
from clearloop.expression import Call, Expression, Number, Variable, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clearloop.runs import Before, Entry, Front, Trusted
    from clearloop.runs.front import Beside


# What the front of a run comes to, in sentences: the same on the screen and in the report.

DIGITS = 3  # of numbers in formulas; the files have all of them


def headline(front: "Front", rows: "Sequence[Trusted]", before: "Before") -> str:
    """How the best compares with the log, or, where a plant was there to test on, with the simplest, and with
    what others have published.

    `rows`: how far each is to be believed; `before`: what was there before.
    """
    best, simplest = front.entries[front.best], front.entries[front.simplest]
    cost = cost_of(best)
    costs = "costs" if best.penalty_system is not None else "promises"
    where = " on the plant" if best.penalty_system is not None else ""
    alike = len({row.readable for row in front.judged}) == 1
    which = "The best controller" if alike else "The best controller that can be read"
    said = f"{which}, {best.controller}, {costs} {format_penalty(cost)}{where}"
    others, advice = [], ""
    from_log = next((row.from_log for row in rows if row.controller == best.controller), None)
    if best.penalty_system is None and before.kind == "log" and before.penalty and from_log is not None:
        others.append(f"{_compared(from_log, before.penalty)} the log, from the same rows")
        known = [row.from_log for row in rows if row.from_log is not None]
        if min(known) >= before.penalty:
            advice = " None is better than what was there when the log was made: keep that."
    elif simplest != best:
        others.append(f"{_compared(cost, cost_of(simplest))} the simplest")
    rivals = [known for known in front.published if known.in_paper]
    if rivals and front.best not in front.planners:
        rival = min(rivals, key=lambda known: known.penalty_system)
        others.append(f"{_compared(cost, rival.penalty_system)} the best published, the {rival.title}")
    return (f"{said}: {' and '.join(others)}." if others else f"{said}.") + advice


def planned(front: "Front", planner: int) -> str:
    """What a planner costs, and the best of the others from the same starts."""
    rows = {row.controller: row for row in front.planned}
    own, best = rows[front.entries[planner].controller], front.entries[front.best].controller
    titles = {} if rows[best].planner else {best: best}
    titles |= {known.controller: known.title for known in front.published if known.in_paper}
    others = [f"{title} {format_penalty(cost_of(rows[name]))}" for name, title in titles.items()]
    return (
        f"{own.controller} plans anew at every step; its figures are from the first {own.starts} starts"
        + (f", where it stands beside {', '.join(others)}" if others else "")
    )


def compared(pick: "Trusted | None", before: "Before") -> str:
    """What was there before, and what the pick promises beside it."""
    if before.penalty is None:
        return before.text
    said = f"{format_penalty(before.penalty)}: {before.text}"
    promise = None
    if pick is not None:
        promise = pick.from_log if before.kind == "log" else pick.promise
    if promise is None:
        return said
    less = _compared(promise, before.penalty).removesuffix(" than")
    return f"{said}; the pick promises {format_penalty(promise)} there, {less}"


def beware(rows: "Sequence[Trusted]") -> list[str]:
    """Of controllers that are not to be believed."""
    return [f"{row.controller}: {' and '.join(row.warnings)}" for row in rows if row.warnings]


def kept(front: "Front") -> str:
    """How far the plant is from what the model promised."""
    pick = front.entries[front.pick]
    pairs = [(e.penalty_model, e.penalty_system) for e in front.entries if e.penalty_system is not None]
    promised, cost = format_penalty(pick.penalty_model), format_penalty(cost_of(pick))
    said = f"the pick promises {promised} and costs {cost} on the plant"
    if not all(promised > 0 for promised, _ in pairs):
        return said
    apart = max(abs(cost / promised - 1) for promised, cost in pairs)
    more = cost_of(pick) / pick.penalty_model - 1
    return (
        f"{said}, {abs(more):.1%} {'more' if more >= 0 else 'less'};"
        f" over the front, plant and promise are at most {apart:.1%} apart"
    ).replace("%", " %")


def sentences(*parts: str) -> str:
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def rounded(formula: str) -> str:
    """With numbers that a person can take in."""
    return re.sub(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?", lambda match: _short(float(match[0])), formula)


def _short(value: float) -> str:
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{DIGITS}g}"
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cost_of(entry: "Entry | Beside") -> float:
    """On the plant, where there is one."""
    return entry.penalty_model if entry.penalty_system is None else entry.penalty_system


def with_error(mean: float, error: float | None) -> str:
    """`2.61 ± 0.12`"""
    return format_penalty(mean) + (f" ± {error:.2g}" if error is not None else "")


def percent(share: float) -> str:
    """`6.1 %`"""
    return f"{100 * share:.1f} %"


def format_penalty(value: float) -> str:
    return f"{value:.2f}" if 0.01 <= abs(value) < 1e5 or value == 0 else f"{value:.3g}"


def _compared(cost: float, other: float) -> str:
    """`12 % less than`; in absolute terms where shares mean nothing."""
    if cost > 0 and other > 0:
        change = cost / other - 1
        size = f"{100 * abs(change):.{0 if abs(change) >= 0.1 else 1}f} %"
    else:
        change, size = cost - other, format_penalty(abs(cost - other))
    return f"{size} {'less' if change <= 0 else 'more'} than"


# Conditions, variables and numbers of a controller in words, with its units.

MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"

_COMPARED = {
    "lt": "is less than", "le": "is at most", "gt": "is more than", "ge": "is at least",
    "eq": "is exactly", "ne": "is not",
}  # fmt: skip


def number(value: float, digits: int = 4) -> str:
    """`49.8`, with a true minus sign."""
    return f"{value + 0.0:.{digits}g}".replace("-", MINUS)


def signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def quantity(value: float, unit: str) -> str:
    return f"{number(value)} {unit}".rstrip()


def variable_words(variable: Variable) -> str:
    """`theta`, `the setpoint of rho`, `theta 3 steps ago`."""
    name = f"the setpoint of {variable.name}" if variable.part == "setpoint" else variable.name
    if not variable.lag:
        return name
    return f"{name} {'1 step' if variable.lag == 1 else f'{variable.lag} steps'} ago"


def condition_words(condition: Expression, controller: Controller) -> str:
    """`the size of theta is more than 0.12 rad and rho is at most 0 m`."""
    match condition:
        case Call(operation, (x, y)) if operation.name in _COMPARED:
            left, right = (_side(side, other, controller) for side, other in ((x, y), (y, x)))
            return f"{left} {_COMPARED[operation.name]} {right}"
        case Call(operation, (p, q)):
            return f" {operation.name} ".join(_joined(part, operation.name, controller) for part in (p, q))
        case Call(_, (p,)):
            return f"it is not so that {condition_words(p, controller)}"
    raise TypeError(f"not a condition: {condition!r}")


def _joined(part: Expression, within: str, controller: Controller) -> str:
    words = condition_words(part, controller)
    alone = not isinstance(part, Call) or part.operation.name in (*_COMPARED, within)
    return words if alone else f"({words})"


def _side(side: Expression, other: Expression, controller: Controller) -> str:
    match side:
        case Number(value):
            return quantity(value, controller.unit(_name(other)).strip())
        case Variable():
            return variable_words(side)
        case Call(operation, (Variable() as inner,)) if operation.name == "abs":
            return f"the size of {variable_words(inner)}"
    return rounded(to_text(side))


def _name(expression: Expression) -> str:
    """Of the variable that stands there, or whose size does; nothing else has a unit that we know."""
    match expression:
        case Variable(name):
            return name
        case Call(operation, (Variable(name),)) if operation.name == "abs":
            return name
    return ""


NEGLIGIBLE = 1e-6  # of the steepest slope of a term


class Said(NamedTuple):
    """A line of the table of what the parts do."""

    what: Expression | str
    does: str
    usual: tuple[float, float] | None = None
    """what it adds in most rows of the log"""
    level: int = 0
    """how deep inside conditions it stands"""


def explain_parts(controller: Controller, action: str, experience: Experience) -> Iterator[Said]:
    """Of what chooses one action."""
    if isinstance(controller, Equation):
        yield from _parts(split_terms(controller.formula(action)), controller, action, experience, 0)
    elif isinstance(controller, Linear):
        for name, gain in controller.gains[action].items():
            yield _term(Term(gain, read_variable(name)), controller, action, experience, 0)
    elif isinstance(controller, PID):
        output = controller.outputs[action]
        for loop in output.loops:
            yield from _loop(loop, output.scale, controller, action)
        if output.bias:
            does = f"always adds {quantity(output.bias, controller.unit(action).strip())}"
            yield Said("bias", does)
    elif isinstance(controller, Fuzzy):
        base = controller.outputs[action]
        for place, rule in enumerate(base.rules, 1):
            pull = base.scale * math.tanh(base.alpha * rule.then)
            yield Said(f"rule {place}", _rule(rule, pull, controller, action))
        scale = quantity(base.scale, controller.unit(action).strip())
        mean = f"{number(base.alpha)} {TIMES} the mean output of the rules, weighted by how well each fits"
        yield Said("together", f"{scale} {TIMES} tanh of {mean}")
    else:
        yield Said("", controller.summary)


def _parts(
    parts: tuple[Part, ...], controller: Controller, action: str, experience: Experience, level: int
) -> Iterator[Said]:
    if not parts:
        yield Said(Number(0.0), "nothing", None, level)
    for part in parts:
        if isinstance(part, Term):
            yield _term(part, controller, action, experience, level)
            continue
        condition = condition_words(part.condition, controller)
        yield Said("", f"if {condition}:", None, level)
        yield from _parts(part.then, controller, action, experience, level + 1)
        yield Said("", "otherwise:", None, level)
        yield from _parts(part.otherwise, controller, action, experience, level + 1)


def _term(term: Term, controller: Controller, action: str, experience: Experience, level: int) -> Said:
    formula, unit = term.formula, controller.unit(action).strip()
    if isinstance(term.core, Number):
        return Said(formula, f"always adds {quantity(term.factor, unit)}", None, level)
    usual = experience.range(formula)
    if isinstance(term.core, Variable):
        verb = "rises" if term.factor > 0 else "falls"
        size = quantity(abs(term.factor), unit)
        does = f"{action} {verb} by {size} {_for_each(term.core, controller)}"
        return Said(formula, does, usual, level)
    slopes = experience.slopes(formula)
    steepest = max(map(abs, slopes.values()), default=0.0)
    clear = {v: slope for v, slope in slopes.items() if abs(slope) > NEGLIGIBLE * steepest}
    near = " and ".join(
        f"{signed(slope)} {unit}".rstrip() + f" {_for_each(variable, controller)}"
        for variable, slope in clear.items()
    )
    does = f"at the operating point {near}" if near else "nothing for small deviations: it grows with larger"
    return Said(formula, does + _bounds(term, unit), usual, level)


def _for_each(variable: Variable, controller: Controller) -> str:
    per = controller.unit(variable.name).strip() or "unit"
    return f"for each {per} of {variable_words(variable)}"


def _bounds(term: Term, unit: str) -> str:
    """Where a term levels off, if its outermost function says so."""
    match term.core:
        case Call(operation, _) if operation.name in ("tanh", "sin", "cos", "sign"):
            return f"; never beyond ± {quantity(abs(term.factor), unit)}"
        case Call(operation, (_, Number(low), Number(high))) if operation.name == "clip":
            ends = sorted((term.factor * low, term.factor * high))
            return f"; limited to {number(ends[0])} … {quantity(ends[1], unit)}"
        case Call(operation, (_, Number(bound))) if operation.name in ("min", "max"):
            most = (operation.name == "min") == (term.factor > 0)
            return f"; {'at most' if most else 'at least'} {quantity(term.factor * bound, unit)}"
    return ""


def _loop(loop: Loop, scale: float, controller: Controller, action: str) -> Iterator[Said]:
    """Of the error setpoint - value, in seconds where the controller knows its own."""
    name, unit, dt = read_variable(loop.input).name, controller.unit(action).strip(), controller.dt or 1.0
    time = "s" if controller.dt else "step"
    per = controller.unit(name).strip() or "unit"
    aim = "its setpoint" if name in controller.setpoint or name in controller.follows else "0"
    gain = scale * loop.weight
    if loop.kp:
        yield Said(
            f"{name}: P",
            f"{signed(gain * loop.kp)} {unit} for each {per} that {name} is below {aim}",
        )
    if loop.ki:
        window = quantity(loop.window * dt, time)
        yield Said(
            f"{name}: I",
            f"{signed(gain * loop.ki / dt)} {unit} for each {per} below, for each {time}"
            f" that it has been so, in the last {window}",
        )
    if loop.kd:
        yield Said(
            f"{name}: D",
            f"{signed(gain * loop.kd * dt)} {unit} for each {per}/{time} that {name} falls",
        )


def _rule(rule: Rule, pull: float, controller: Controller, action: str) -> str:
    premise = " and ".join(
        f"{variable_words(read_variable(name))} is about {number(term.center)} ± "
        + quantity(term.width, controller.unit(read_variable(name).name).strip())
        for name, term in rule.premise.items()
    )
    return f"if {premise}, then {action} {signed(pull)} {controller.unit(action).strip()}".rstrip()
