"""The languages that a controller can be exported to. A new one is a function and a line in the table."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, quoted
from clearloop.exports.c import c_unit
from clearloop.exports.javascript import javascript
from clearloop.exports.latex import latex
from clearloop.exports.lowering import lower
from clearloop.exports.printer import about, ascii_name
from clearloop.exports.python import python
from clearloop.exports.spans import DOUBLE, PRECISIONS, Precision
from clearloop.exports.structured_text import plcopen_xml, pous, structured_text

Files = dict[str, str]
"""Texts by file name, the main one first."""


@dataclass(frozen=True)
class Target:
    write: Callable[[Controller, str, Precision], Files]
    """From a controller and the name of the export."""
    networks: bool
    """Whether it takes networks, which nobody wants to read."""
    single: bool
    """Whether it has single precision."""
    vary: Callable[[Controller, str, Precision, frozenset[str]], Files] | None = None
    """Writes it with options, where there are any."""


def _c(controller: Controller, name: str, precision: Precision) -> Files:
    unit, words = c_unit(lower(controller), name, precision), about(controller, name)
    return {f"{unit.prefix}.c": unit.source(words), f"{unit.prefix}.h": unit.header(words)}


def _javascript(controller: Controller, name: str, _: Precision) -> Files:
    return {f"{ascii_name(name)}.mjs": javascript(lower(controller), about(controller, name))}


def _python(controller: Controller, name: str, _: Precision) -> Files:
    return {f"{ascii_name(name)}.py": python(lower(controller), about(controller, name))}


def _latex(controller: Controller, name: str, _: Precision) -> Files:
    return {f"{ascii_name(name)}.tex": latex(controller)}


def _structured_text(
    controller: Controller, name: str, precision: Precision, options: frozenset[str] = frozenset()
) -> Files:
    return {f"{ascii_name(name)}.st": structured_text(pous(controller, name, precision, options))}


def _plcopen(
    controller: Controller, name: str, precision: Precision, options: frozenset[str] = frozenset()
) -> Files:
    return {f"{ascii_name(name)}.xml": plcopen_xml(pous(controller, name, precision, options))}


TARGETS: dict[str, Target] = {
    "c": Target(_c, networks=True, single=True),
    "st": Target(_structured_text, networks=False, single=True, vary=_structured_text),
    "plcopen": Target(_plcopen, networks=False, single=True, vary=_plcopen),
    "javascript": Target(_javascript, networks=True, single=False),
    "python": Target(_python, networks=True, single=False),
    "latex": Target(_latex, networks=False, single=False),
}


def export(
    controller: Controller,
    *,
    to: str,
    name: str = "controller",
    precision: str = DOUBLE.name,
    options: Collection[str] = (),
) -> Files:
    """The controller as source code: texts by file name.

    `to`: c, st, plcopen, javascript, python or latex. `name`: of the files, and of what they define.
    `precision`: double, or single for C, st and plcopen. `options`: of PIDs, for st and plcopen
    (`structured_text/options.py`). Limits and units are the controller's: `controller.for_task(task)` gives
    it a task's.
    """
    target = find_target(to)
    if precision not in PRECISIONS:
        raise ClearloopError(f"precision {quoted(precision)}: expected {' or '.join(PRECISIONS)}")
    if precision != DOUBLE.name and not target.single:
        raise ClearloopError(f"{to} has no {precision} precision: leave it at double")
    if controller.plans:
        raise ClearloopError(
            f"a controller of kind '{controller.kind}' cannot be exported: it plans with its model"
        )
    if not target.networks and not controller.readable:
        can = ", ".join(key for key, one in TARGETS.items() if one.networks)
        raise ClearloopError(
            f"a controller of kind '{controller.kind}' cannot be exported to {to}; networks can be to: {can}"
        )
    check_limits(controller, PRECISIONS[precision])
    if options:
        if target.vary is None:
            can = ", ".join(key for key, one in TARGETS.items() if one.vary)
            raise ClearloopError(f"--with {min(options)}: {to} has no options: export to {can}")
        return target.vary(controller, name, PRECISIONS[precision], frozenset(options))
    return target.write(controller, name, PRECISIONS[precision])


def find_target(to: str) -> Target:
    if to not in TARGETS:
        raise ClearloopError(f"no export to {quoted(to)}; expected one of: {', '.join(TARGETS)}")
    return TARGETS[to]


def check_limits(controller: Controller, precision: Precision) -> None:
    """Refuse limits that the precision cannot tell apart or compute with."""
    for name in controller.limits:
        low, high, step = controller.range_of(name)
        near, far = precision.rounded(low), precision.rounded(high)
        parts = controller.range_of(name).parts if step else 1
        if not (near < far and (abs(low) + abs(high)) * max(parts, 1) < precision.largest / 4):
            raise ClearloopError(
                f"limits.{name}: {low:g} … {high:g} does not fit {precision.name} precision: "
                "take other limits, or double precision"
            )
