"""Laws in words and numbers that people compare with their own."""

from collections.abc import Iterator
from typing import NamedTuple

from clearloop.explanation.law import Law
from clearloop.explanation.structure import Term

DIGITS = 4


def percent(share: float) -> str:
    """`99.8 %`; with as many digits as it takes not to say 100 or 0 of what is neither."""
    for digits in range(1, 7):
        margin = 0.5 * 10.0 ** -(digits + 2)
        if margin <= share < 1 - margin:
            return f"{100 * share:.{digits}f} %"
    return "100 %" if share > 0.5 else "0 %"


def formula(law: Law) -> str:
    """`6*theta + 1.8*rate(theta)`."""
    lag = f"[t-{law.structure.delay}]" if law.structure.delay else ""
    products = [
        f"{gain:.{DIGITS}g}*{name_of(term)}{lag}" for term, gain in zip(law.terms, law.gains, strict=True)
    ]
    constant = [f"{law.constant:.{DIGITS}g}"] if law.constant or not products else []
    return " + ".join([*products, *constant]).replace("+ -", "- ")


def name_of(term: Term) -> str:
    """`rate(theta)`."""
    if term.kind == "sum":
        return f"integral({term.state})"
    if term.kind == "rate":
        return f"rate({term.state})"
    return f"{term.state}.setpoint" if term.kind == "setpoint" else term.state


class StandardForm(NamedTuple):
    """Kp (e + ∫e / Ti + Td ė) on e = setpoint − state; times in seconds, None where there is no such term."""

    state: str
    kp: float
    ti: float | None
    td: float | None

    def __str__(self) -> str:
        times = [("Ti", self.ti), ("Td", self.td)]
        said = [f"{name} = {value:.{DIGITS}g} s" for name, value in times if value is not None]
        return f"{self.state}: " + ", ".join([f"Kp = {self.kp:.{DIGITS}g}", *said])


def standard_forms(law: Law) -> Iterator[StandardForm]:
    """Of the states whose value, and integral or rate, are in the law."""
    gains = {(term.kind, term.state): float(gain) for term, gain in zip(law.terms, law.gains, strict=True)}
    for (kind, state), kp in gains.items():
        ki, kd = gains.get(("sum", state)), gains.get(("rate", state))
        if kind == "value" and kp and (ki or kd):
            yield StandardForm(state, -kp, kp / ki if ki else None, kd / kp if kd else None)


def notes(law: Law, dt: float) -> Iterator[str]:
    """What the formula leaves open."""
    form, kinds = law.structure, {term.kind for term in law.terms}
    if "rate" in kinds:
        of = "value - setpoint" if form.of_error else "the value alone"
        tau = (
            f"filtered with a time constant of {seconds(form.pole, dt):.3g} s"
            if form.pole
            else "not filtered"
        )
        yield f"rates, per second, are those of {of}, {tau}"
    if "sum" in kinds:
        yield f"integrals, in seconds, run {_span(law, dt)}"
    if form.delay:
        yield f"the law reads what was observed {form.delay} step{'s' * (form.delay > 1)} before"


def seconds(pole: float, dt: float) -> float:
    """The time constant of a filter, τ = a dt / (1 − a): backward Euler."""
    return pole * dt / (1 - pole)


def _span(law: Law, dt: float) -> str:
    if not any(law.windows.values()):
        return "from the episode's start" + ", but not while the action is at a limit" * law.structure.paused
    return "over " + ", ".join(f"{rows * dt:.3g} s ({name})" for name, rows in law.windows.items())
