"""The registry of the kinds of controllers; each kind is defined in a file of its own."""

from importlib.metadata import entry_points
from typing import TypeVar

from clearloop.controllers.controller import Controller
from clearloop.controllers.equation import Equation
from clearloop.controllers.fuzzy import Fuzzy
from clearloop.controllers.linear import Linear
from clearloop.controllers.network import GreedyQ, NetworkController
from clearloop.controllers.pid import PID
from clearloop.controllers.planner import Planner
from clearloop.errors import ClearloopError, did_you_mean, quoted

GROUP = "clearloop.controllers"
"""The entry points by which other packages name their kinds: `table = "my_package:TableController"`."""

C = TypeVar("C", bound=Controller)

KINDS: dict[str, type[Controller]] = {}
"""The classes of controllers by the name that stands as `kind` in a file."""


def register(kind: type[C]) -> type[C]:
    """Make a kind of controller known, so that its files can be read; this may decorate the class.

    Args:
        kind: A subclass of `Controller`, whose field `kind` has its name as default.

    Returns:
        The same class.

    Raises:
        ClearloopError: If another kind has this name.
    """
    name = str(kind.model_fields["kind"].default)
    if KINDS.setdefault(name, kind) is not kind:
        raise ClearloopError(f"there are two kinds of controllers with the name {quoted(name)}")
    return kind


for _kind in (Equation, Linear, Fuzzy, PID, NetworkController, GreedyQ, Planner):
    register(_kind)


def find_kind(name: str) -> type[Controller]:
    """Return the class of a kind: one of this package, a registered one, or one of an installed package.

    Raises:
        ClearloopError: If there is no such kind, or if it cannot be loaded.
    """
    for point in entry_points(group=GROUP, name=name) if name not in KINDS else ():
        try:
            register(point.load())
        except Exception as error:
            raise ClearloopError(f"kind {quoted(name)}: {point.value} cannot be loaded: {error}") from error
    if name not in KINDS:
        hint = did_you_mean(name, KINDS) or f"; the kinds are: {', '.join(KINDS)}"
        raise ClearloopError(f"kind: {quoted(name)} is not a kind of controller{hint}")
    return KINDS[name]
