"""Four lights beside the answer: whether to believe it, with the reason in words."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from clearloop.data.report import Report
from clearloop.diagnosis import Diagnosis, Linearisation
from clearloop.report.sentences import kept, percent, sentences
from clearloop.runs import Front
from clearloop.surrogate import Quality

Grade = Literal["good", "fair", "poor"]
SIGNS: dict[Grade, str] = {"good": "●", "fair": "◐", "poor": "○"}
REASONS = 2  # of the verdict on the model; all of them stand further down
KEPT, NEARLY = 0.05, 0.15  # how far plant and promise may be apart
FEW, MANY = 0.05, 0.2  # share of the starts that a disturbance may cost
DEARER, TWICE = 0.25, 1.0  # how much more of the penalty


class Light(NamedTuple):
    name: str
    grade: Grade
    text: str

    @property
    def sign(self) -> str:
        return SIGNS[self.grade]


def lights(front: Front, examined: Report, quality: Quality, pick: Diagnosis) -> list[Light]:
    found = [_data(examined), Light("The model", quality.verdict, sentences(*quality.reasons[:REASONS]))]
    return [*found, _promise(front), *_calm(pick)]


def _data(examined: Report) -> Light:
    grade: Grade = "good" if examined.severity in ("ok", "note") else "fair"
    return Light("The data", "poor" if examined.severity == "problem" else grade, examined.verdict)


def _promise(front: Front) -> Light:
    pairs = [(e.penalty_model, e.penalty_system) for e in front.entries if e.penalty_system is not None]
    if not pairs:
        return Light("The promise", "fair", "There is no plant to test it on: it is what the model says.")
    apart = max(abs(cost - promise) / max(abs(promise), 1e-9) for promise, cost in pairs)
    return Light("The promise", _graded(apart, KEPT, NEARLY), sentences(kept(front)))


def _calm(pick: Diagnosis) -> list[Light]:
    """What the worst of the disturbances does to the pick."""
    if pick.robustness is None:
        return []
    before = pick.robustness
    worst = max(before.disturbed, key=lambda one: (one.failures, one.penalty))
    lost, dearer = worst.failures - before.failures, worst.change / max(abs(before.penalty), 1e-9)
    fails = f"{percent(worst.failures)} of the starts fail, not {percent(before.failures)}"
    costs = f"it costs {100 * dearer:.0f} % more" if dearer > 0 else "it costs no more"
    said = f"with {worst.name} {costs}, and {fails if lost > 0 else 'no more starts fail'}"
    grade = max(_graded(lost, FEW, MANY), _graded(dearer, DEARER, TWICE), key=list(SIGNS).index)
    return [Light("Disturbed", grade, sentences(said, *_small_deviations(pick.linearisation)))]


def _small_deviations(found: Linearisation | None) -> Iterator[str]:
    if found is not None:
        holds = found.at_rest and found.smooth
        yield f"close to its rest it is {found!r}" if holds else f"it {found!r}"


def _graded(value: float, good: float, fair: float) -> Grade:
    return "good" if value <= good else "fair" if value <= fair else "poor"
