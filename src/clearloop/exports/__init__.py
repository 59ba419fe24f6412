"""Exports: a controller as source code in the languages of PLCs and computers. See `docs/export.md`."""

from clearloop.controllers.routine import Routine
from clearloop.exports.lowering import lower
from clearloop.exports.spans import DOUBLE, PRECISIONS, SINGLE, Precision
from clearloop.exports.targets import Files, Order, Target, export

__all__ = [
    "DOUBLE",
    "PRECISIONS",
    "SINGLE",
    "Files",
    "Order",
    "Precision",
    "Routine",
    "Target",
    "export",
    "lower",
]
