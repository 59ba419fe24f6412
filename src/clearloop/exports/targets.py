"""The interface of export targets, and the function that users call to export a controller.

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
    """An order says which controller a target exports, and how.

    Attributes:
        controller: The controller with its limits and units.
        name: The name of the export, as the user gave it; `printer.ascii_name` makes an identifier of it.
        precision: The precision of the numbers; always double for a target without single precision.
        options: The options of the target that were asked for.
    """

    controller: Controller
    name: str
    precision: Precision
    options: frozenset[str]


class Target(ABC):
    """A target is a language that controllers are exported to; its class variables say what it can do.

    Attributes:
        name: The name that users write, as in `export --to c`: small letters, digits and dashes.
        title: The name of the language for people, such as "C".
        endings: The endings of the file names, that of the main file first: (".c", ".h").
        networks: Whether controllers that a person cannot read, such as networks, can be exported, too.
        single: Whether single precision is available.
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
) -> Files:
    """Export a controller as source code.

    Args:
        controller: The controller. Its limits and units are exported, too; `controller.for_task(task)` gives
            it those of a task.
        to: The name of a target: c, st, plcopen, javascript, python, latex, or one of another package.
        name: The name of the files and of what they define.
        precision: "double", or "single" if the target has it (c, st, plcopen).
        options: Options of the target (st and plcopen have some for PIDs).

    Returns:
        The texts by file name, the main file first.

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
    return target.write(Order(controller, name, PRECISIONS[precision], frozenset(options)))


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
