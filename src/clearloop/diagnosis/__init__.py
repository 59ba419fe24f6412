"""What an engineer wants to know of one controller before signing it, as data."""

from clearloop.diagnosis.coverage import Coverage, Region, cover
from clearloop.diagnosis.diagnosis import Diagnosis, aimed, diagnose
from clearloop.diagnosis.linearisation import Linearisation, linearise
from clearloop.diagnosis.margins import Margin, Margins, find_margins
from clearloop.diagnosis.modes import Mode
from clearloop.diagnosis.robustness import Disturbance, Robustness, Sensitivity, disturb
from clearloop.diagnosis.starts import StartMap, map_starts
from clearloop.diagnosis.step_response import StepResponse, step_responses

__all__ = [
    "Coverage",
    "Diagnosis",
    "Disturbance",
    "Linearisation",
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
    "find_margins",
    "linearise",
    "map_starts",
    "step_responses",
]
