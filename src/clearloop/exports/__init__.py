"""Source code for controllers. See `docs/export.md`."""

import sys
from types import ModuleType
from typing import Any

from clearloop.controllers.routine import Routine
from clearloop.exports.lowering import lower
from clearloop.exports.spans import DOUBLE, PRECISIONS, SINGLE, Precision
from clearloop.exports.targets import TARGETS, Files, export

__all__ = ["DOUBLE", "PRECISIONS", "SINGLE", "TARGETS", "Files", "Precision", "Routine", "export", "lower"]


class _Package(ModuleType):
    """`clearloop.export` is this package and the function: whoever imports first must not decide which."""

    def __call__(self, *arguments: Any, **options: Any) -> Files:
        return export(*arguments, **options)


sys.modules[__name__].__class__ = _Package
