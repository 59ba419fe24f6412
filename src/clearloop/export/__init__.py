"""Source code for controllers, and the proof that it is the same function. See `docs/export.md`."""

from clearloop.export.lowering import lower
from clearloop.export.routine import Routine

__all__ = ["Routine", "lower"]
