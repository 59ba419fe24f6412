"""The model that is learned from a batch, and what is known about its quality."""

from clearloop.surrogate.quality import Quality, assess
from clearloop.surrogate.surrogate import Surrogate
from clearloop.surrogate.tracks import BEST, PUBLISHED, TRACKS, Track

__all__ = ["BEST", "PUBLISHED", "TRACKS", "Quality", "Surrogate", "Track", "assess"]
