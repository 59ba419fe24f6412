"""The surrogate is the model that is learned from a batch; its quality is measured on held-out data."""

from clearloop.surrogate.quality import Quality, assess
from clearloop.surrogate.steps import BEST, PUBLISHED, TRACKS, Track
from clearloop.surrogate.surrogate import Surrogate
from clearloop.surrogate.trust import examine, examine_model

__all__ = [
    "BEST",
    "PUBLISHED",
    "TRACKS",
    "Quality",
    "Surrogate",
    "Track",
    "assess",
    "examine",
    "examine_model",
]
