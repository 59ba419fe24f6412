"""Four lights beside the answer: whether to believe it, with the reason in words."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from clearloop.data.report import Report
from clearloop.diagnosis import Diagnosis, Linearisation
from clearloop.report.sentences import kept, sentences
from clearloop.runs import Front
from clearloop.surrogate import Quality

Grade = Literal["good", "fair", "poor"]
SIGNS: dict[Grade, str] = {"good": "●", "fair": "◐", "poor": "○"}
REASONS = 2  # of the verdict on the model; all of them stand further down
KEPT, NEARLY = 0.05, 0.15  # how far plant and promise may be apart
FEW, MANY = 0.05, 0.2  # share of the starts that a disturbance may cost


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
    before = pick.robustness.failures
    worst = max(pick.robustness.disturbed, key=lambda one: (one.failures, one.penalty))
    said = f"with {worst.name}, {100 * worst.failures:.0f} % of the starts fail, not {100 * before:.0f} %"
    parts = [said, *_small_deviations(pick.linearisation)]
    return [Light("Disturbed", _graded(worst.failures - before, FEW, MANY), sentences(*parts))]


def _small_deviations(found: Linearisation | None) -> Iterator[str]:
    if found is not None:
        holds = found.at_rest and found.smooth
        yield f"close to its rest it is {found!r}" if holds else f"it {found!r}"


def _graded(value: float, good: float, fair: float) -> Grade:
    return "good" if value <= good else "fair" if value <= fair else "poor"
