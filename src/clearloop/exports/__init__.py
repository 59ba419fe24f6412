"""Source code for controllers. See `docs/export.md`."""

from clearloop.controllers.routine import Routine
from clearloop.exports.lowering import lower
from clearloop.exports.spans import DOUBLE, PRECISIONS, SINGLE, Precision
from clearloop.exports.targets import TARGETS, Files, export

__all__ = ["DOUBLE", "PRECISIONS", "SINGLE", "TARGETS", "Files", "Precision", "Routine", "export", "lower"]
