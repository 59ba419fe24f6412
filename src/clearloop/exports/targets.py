"""The interface of export targets, and the function that users call to export a controller.

A new target is a file with a class that derives from `Target`, and a line in `registry.py`.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, quoted
from clearloop.exports.comments import harmless
from clearloop.exports.spans import DOUBLE, PRECISIONS, Precision
from clearloop.registry import TARGETS

Files = dict[str, Any]
"""Texts by file name, the main one first; a file that is no text, such as an FMU, is bytes."""


@dataclass(frozen=True)
class Order:
    """An order says which controller a target exports, and how.

    Attributes:
        controller: The controller with its limits and units.
        name: The name of the export, as the user gave it; `printer.ascii_name` makes an identifier of it.
        precision: The precision of the numbers; always double for a target without single precision.
        options: The options of the target that were asked for.
        guard: Whether the exported block checks its inputs.
        origin: Lines for the head of the text that say what it was made from: files with their hashes.
        date: The day of the export as "2026-11-18", for formats that have a place for it; empty: none.
    """

    controller: Controller
    name: str
    precision: Precision
    options: frozenset[str]
    guard: bool = False
    origin: tuple[str, ...] = ()
    date: str = ""


class Target(ABC):
    """A target is a language that controllers are exported to; its class variables say what it can do.

    Attributes:
        name: The name that users write, as in `export --to c`: small letters, digits and dashes.
        title: The name of the language for people, such as "C".
        endings: The endings of the file names, that of the main file first: (".c", ".h").
        networks: Whether controllers that a person cannot read, such as networks, can be exported, too.
        single: Whether single precision is available.
        built: Whether the files hold machine code, so that their bytes depend on the compiler.
        guards: Whether its blocks can check their inputs, and then do unless asked not to.
        options: The names that `export --with` accepts.
        verifier: The place, "package.module:function", of a function that takes a
            `clearloop.verification.BenchTrial`, runs the exported code on its test vectors and returns the
            actions [N, A]. If it is empty, exports to this target cannot be verified.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    networks: ClassVar[bool] = False
    single: ClassVar[bool] = False
    built: ClassVar[bool] = False
    guards: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ()
    verifier: ClassVar[str] = ""

    @abstractmethod
    def write(self, order: Order) -> Files:
        """Return the files of an export.

        Raises:
            ClearloopError: If this controller cannot be exported to this target; the message says why.
        """


def export(
    controller: Controller,
    *,
    to: str,
    name: str = "controller",
    precision: str = DOUBLE.name,
    options: Collection[str] = (),
    without: Collection[str] = (),
    origin: Collection[str] = (),
    date: str = "",
) -> Files:
    """Export a controller as source code.

    Args:
        controller: The controller. Its limits and units are exported, too; `controller.for_task(task)` gives
            it those of a task.
        to: The name of a target: c, st, plcopen, javascript, python, latex, fmu, or one of another package.
        name: The name of the files and of what they define.
        precision: "double", or "single" if the target has it (c, st, plcopen).
        options: Options of the target, such as "manual" (c, st and plcopen have some; fmu has "fmi3" and
            "sources-only").
        without: What to leave out: "guard" leaves out the checks of the inputs (c, st, plcopen).
        origin: Lines for the head of the text that say what it was made from, such as a file with its hash.
        date: The day of the export, such as "2026-11-18"; without it equal controllers give equal files.

    Returns:
        The texts by file name, the main file first; an FMU is bytes.

    Raises:
        ClearloopError: If there is no such target, or if it cannot express this controller.
    """
    target = find_target(to)
    if precision not in PRECISIONS:
        raise ClearloopError(f"precision {quoted(precision)}: expected {' or '.join(PRECISIONS)}")
    if precision != DOUBLE.name and not target.single:
        raise ClearloopError(f"{to} has no {precision} precision: use double precision")
    if controller.plans:
        raise ClearloopError(
            f"a controller of kind '{controller.kind}' cannot be exported: it plans with its model"
        )
    if not target.networks and not controller.readable:
        can = ", ".join(one.name for one in TARGETS.working() if one.networks)
        raise ClearloopError(
            f"a controller of kind '{controller.kind}' cannot be exported to {to}; export it to one of: {can}"
        )
    check_limits(controller, PRECISIONS[precision])
    if options and not target.options:
        can = ", ".join(one.name for one in TARGETS.working() if one.options)
        raise ClearloopError(f"--with {min(options)}: {to} has no options: export to {can}")
    for option in sorted({*options} - {*target.options}):
        raise ClearloopError(f"--with {option}: unknown option; {to} has {', '.join(target.options)}")
    for part in sorted({*without} - {"guard"}):
        raise ClearloopError(f"--without {part}: expected guard, which checks the inputs")
    guard = target.guards and "guard" not in without
    if date and not _is_day(date):
        raise ClearloopError(f"--date {quoted(date)}: expected a day such as 2026-11-18")
    more = [f"Date: {date}."] if date else []
    lines = tuple(map(harmless, [*origin, *more]))
    chosen = frozenset(options)
    return target.write(Order(controller, name, PRECISIONS[precision], chosen, guard, lines, date))


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def find_target(name: str) -> Target:
    """Return the target of this name, or raise a `ClearloopError` that suggests a similar one."""
    found: type[Target] = TARGETS.find(name)
    return found()


def check_limits(controller: Controller, precision: Precision) -> None:
    """Raise a `ClearloopError` for limits that the precision cannot tell apart or compute with."""
    for name in controller.limits:
        low, high, step = controller.range_of(name)
        near, far = precision.rounded(low), precision.rounded(high)
        parts = controller.range_of(name).parts if step else 1
        if not (near < far and (abs(low) + abs(high)) * max(parts, 1) < precision.largest / 4):
            raise ClearloopError(
                f"limits.{name}: {low:g} … {high:g} does not fit {precision.name} precision: "
                "choose other limits, or double precision"
            )
