"""The examination of one controller before somebody signs it: margins, responses, robustness, coverage."""

from clearloop.diagnosis.diagnosis import Diagnosis, aimed, diagnose
from clearloop.diagnosis.margins import (
    LoggedMargins,
    Margin,
    Margins,
    compare_margins,
    find_logged_margins,
    find_margins,
    find_resting_margins,
)
from clearloop.diagnosis.response import StepResponse, step_responses
from clearloop.diagnosis.robustness import (
    Coverage,
    Region,
    Robustness,
    Sensitivity,
    StartMap,
    cover,
    disturb,
    map_starts,
)
from clearloop.evaluation.linearisation import Linearisation, Mode, linearise

__all__ = [
    "Coverage",
    "Diagnosis",
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
    "compare_margins",
    "cover",
    "diagnose",
    "disturb",
    "find_logged_margins",
    "find_margins",
    "find_resting_margins",
    "linearise",
    "map_starts",
    "step_responses",
]
