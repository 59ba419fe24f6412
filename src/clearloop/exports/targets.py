"""What an export target promises, and the function that users call to export a controller.

A new target is a file with a class that derives from `Target`, and a line in `registry.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, quoted
from clearloop.exports.spans import DOUBLE, PRECISIONS, Precision
from clearloop.registry import TARGETS

Files = dict[str, str]
"""Texts by file name, the main one first."""


@dataclass(frozen=True)
class Order:
    """What is to be exported, and how."""

    controller: Controller
    """with its limits and units"""
    name: str
    """of the export, as the user gave it; `printer.ascii_name` makes an identifier of it"""
    precision: Precision
    """of the numbers; always double for a target that has no single precision"""
    options: frozenset[str]
    """some of the target's"""


class Target(ABC):
    """A language that controllers are exported to. The class variables say what it can do."""

    name: ClassVar[str]
    """what users write: `export --to c`; small letters, digits and dashes"""
    title: ClassVar[str]
    """what people call it: "C" """
    endings: ClassVar[tuple[str, ...]]
    """of the file names, the main one first: (".c", ".h")"""
    networks: ClassVar[bool] = False
    """whether it takes networks, which nobody wants to read"""
    single: ClassVar[bool] = False
    """whether it has single precision"""
    options: ClassVar[tuple[str, ...]] = ()
    """what `export --with` can ask for"""
    verifier: ClassVar[str] = ""
    """the place of a function, "package.module:function", that takes a `clearloop.verification.BenchTrial`,
    runs the exported code on its test vectors, and gives the actions [N, A]; none: it cannot be verified"""

    @abstractmethod
    def write(self, order: Order) -> Files:
        """The files of an export.

        Raises:
            ClearloopError: this controller cannot be exported to this target; the message says why.
        """


def export(
    controller: Controller,
    *,
    to: str,
    name: str = "controller",
    precision: str = DOUBLE.name,
    options: Collection[str] = (),
) -> Files:
    """The controller as source code: texts by file name, the main file first.

    Args:
        controller: its limits and units are written, too; `controller.for_task(task)` gives it a task's.
        to: the name of a target: c, st, plcopen, javascript, python, latex, or one of another package.
        name: of the files, and of what they define.
        precision: double; or single, where the target has it (C, st, plcopen).
        options: what is to be added, where the target has options (PIDs in st and plcopen).

    Raises:
        ClearloopError: there is no such target, or it cannot express this controller.
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
        can = ", ".join(one.name for one in TARGETS.working() if one.networks)
        raise ClearloopError(
            f"a controller of kind '{controller.kind}' cannot be exported to {to}; networks can be to: {can}"
        )
    check_limits(controller, PRECISIONS[precision])
    if options and not target.options:
        can = ", ".join(one.name for one in TARGETS.working() if one.options)
        raise ClearloopError(f"--with {min(options)}: {to} has no options: export to {can}")
    for option in sorted({*options} - {*target.options}):
        raise ClearloopError(f"--with {option}: unknown; there is {', '.join(target.options)}")
    return target.write(Order(controller, name, PRECISIONS[precision], frozenset(options)))


def find_target(name: str) -> Target:
    """The target of this name; an error with a suggestion if there is none."""
    found: type[Target] = TARGETS.find(name)
    return found()


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
