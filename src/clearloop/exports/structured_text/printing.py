"""The Structured Text export: the units of a controller, and the options that a PID block can have."""

from collections.abc import Collection

from clearloop.controllers import Controller
from clearloop.exports.comments import about
from clearloop.exports.guard import OPTIONS, routine_of
from clearloop.exports.printer import ascii_name
from clearloop.exports.spans import Precision
from clearloop.exports.structured_text.functions import DIALECT, HELPER_TEMPLATES, finished, real
from clearloop.exports.structured_text.units import Declaration, Pou, pou_text
from clearloop.exports.structured_text.writer import Writer, split_deep
from clearloop.exports.targets import Files, Order, Target


class StructuredText(Target):
    """The target `st`: one file of Structured Text."""

    name, title, endings = "st", "Structured Text", (".st",)
    single, guards, options = True, True, OPTIONS
    verifier = "clearloop.verification.verdict:run_structured_text"

    def write(self, order: Order) -> Files:
        """Return the text of the function block and of the functions that it calls."""
        units = pous_of(order)
        return {f"{ascii_name(order.name)}.st": structured_text(units)}


def pous_of(order: Order) -> list[Pou]:
    """Return the program organisation units of an order."""
    return pous(
        order.controller,
        order.name,
        order.precision,
        order.options,
        guard=order.guard,
        origin=order.origin,
    )


def pous(
    controller: Controller,
    name: str,
    precision: Precision,
    options: frozenset[str] = frozenset(),
    *,
    guard: bool = False,
    origin: Collection[str] = (),
) -> list[Pou]:
    """Return the program organisation units of a controller.

    Args:
        controller: The controller, with its limits and units.
        name: The name of the function block, as the user gave it.
        precision: Double or single precision.
        options: Some of `OPTIONS`.
        guard: Whether the block checks its inputs.
        origin: Lines for the comment before it that say what it was made from.

    Returns:
        The functions that the function block calls, then the function block.

    Raises:
        ClearloopError: If an option does not suit the controller.
    """
    routine = routine_of(controller, options, guard=guard)
    block = Writer(split_deep(routine), name, precision).block(about(controller, name, options, origin))
    return [*functions(block.body, precision), block]


def structured_text(units: list[Pou]) -> str:
    """Return the text of several units."""
    return "\n".join(pou_text(unit) for unit in units)


def functions(body: str, precision: Precision) -> list[Pou]:
    """Return the helper functions that a text calls, and those that they call."""
    called = [_function(name, precision) for name in DIALECT.helpers_in(body)]
    names = DIALECT.helpers_in("\n".join([body, *(one.body for one in called)]))
    return [_function(name, precision) for name in names]


def _function(name: str, precision: Precision) -> Pou:
    template = HELPER_TEMPLATES[name]
    declarations = [Declaration("VAR_INPUT", one, real(precision)) for one in template.inputs]
    declarations += [Declaration("VAR", one, real(precision)) for one in template.locals]
    return Pou(
        name=name,
        result=real(precision),
        words=(template.words,),
        declarations=tuple(declarations),
        body=finished(template.body, precision),
    )
