"""The light that says how the pick bears disturbances."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from clearloop.diagnosis import Diagnosis
from clearloop.diagnosis.robustness import Robustness, Sensitivity
from clearloop.pages.report import Light, _calm


def disturbed(penalty: float, change: float, failures: tuple[float, float]) -> Light:
    worst = Sensitivity("delay of one step", penalty + change, change, 0.0, failures[1])
    mild = Sensitivity("gain +20 %", penalty, 0.0, 0.0, failures[0])
    pick: Any = SimpleNamespace(
        robustness=Robustness(100, penalty, failures[0], (mild, worst)), linearisation=None
    )
    (light,) = _calm(cast(Diagnosis, pick))
    return light


@pytest.mark.parametrize(
    ("penalty", "change", "failures", "grade", "text"),
    [
        (
            6.0,
            13.5,
            (0.0, 0.0),
            "poor",
            "With delay of one step it costs 225 % more, and no more starts fail.",
        ),
        (6.0, 0.6, (0.0, 0.0), "good", "With delay of one step it costs 10 % more, and no more starts fail."),
        (
            2.5,
            1.0,
            (0.04, 0.1),
            "fair",
            "it costs 40 % more, and 10.0 % of the starts fail instead of 4.0 %.",
        ),
        (-140.0, 7.0, (0.0, 0.0), "good", "it costs 5 % more, and no more starts fail."),
        (2.5, 0.1, (0.0, 0.3), "poor", "it costs 4 % more, and 30.0 % of the starts fail instead of 0.0 %."),
    ],
)
def test_lost_starts_and_higher_costs_count(
    penalty: float, change: float, failures: tuple[float, float], grade: str, text: str
) -> None:
    light = disturbed(penalty, change, failures)
    assert light.grade == grade
    assert text in light.text


def test_what_does_not_disturb_is_good() -> None:
    light = disturbed(2.5, -0.1, (0.1, 0.1))
    assert (light.grade, light.name) == ("good", "Disturbed")
    assert "it costs no more, and no more starts fail." in light.text
