"""The examination of one controller before somebody signs it: margins, responses, robustness, coverage."""

from clearloop.diagnosis.diagnosis import Diagnosis, aimed, diagnose
from clearloop.diagnosis.linearisation import Linearisation, Mode, linearise
from clearloop.diagnosis.margins import LoggedMargins, Margin, Margins, find_logged_margins, find_margins
from clearloop.diagnosis.response import StepResponse, step_responses
from clearloop.diagnosis.robustness import (
    Coverage,
    Disturbance,
    Region,
    Robustness,
    Sensitivity,
    StartMap,
    cover,
    disturb,
    map_starts,
)

__all__ = [
    "Coverage",
    "Diagnosis",
    "Disturbance",
    "Linearisation",
    "LoggedMargins",
    "Margin",
    "Margins",
    "Mode",
    "Region",
    "Robustness",
    "Sensitivity",
    "StartMap",
    "StepResponse",
    "aimed",
    "cover",
    "diagnose",
    "disturb",
    "find_logged_margins",
    "find_margins",
    "linearise",
    "map_starts",
    "step_responses",
]
