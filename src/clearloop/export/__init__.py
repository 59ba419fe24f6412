"""Source code for controllers. See `docs/export.md`."""

from clearloop.export.lowering import lower
from clearloop.export.precision import DOUBLE, PRECISIONS, SINGLE, Precision
from clearloop.export.routine import Routine
from clearloop.export.targets import TARGETS, Files, export

__all__ = ["DOUBLE", "PRECISIONS", "SINGLE", "TARGETS", "Files", "Precision", "Routine", "export", "lower"]
