"""The registry of all that users choose by name: methods, kinds of controllers and export targets.

A new built-in one is a file of its own and a line in a table below. Another package adds one by an entry
point of the group `clearloop.methods`, `clearloop.kinds` or `clearloop.targets` (`docs/extending.md`).
Nothing is imported before it is used, so that help texts can list all names at once.
"""

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

from clearloop.errors import ClearloopError, ClearloopWarning, did_you_mean, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NAME = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")  # it becomes a part of file names


class Registry(MutableMapping[str, type[Any]]):
    """Classes by name, imported when they are first asked for. Tests may add theirs as to a dictionary."""

    def __init__(
        self,
        noun: str,
        group: str,
        base: str,
        built_in: Mapping[str, str],
        name_of: Callable[[type[Any], type[Any]], str] | None = None,
    ) -> None:
        """Make a registry.

        Args:
            noun: what is registered, for messages: "method".
            group: the entry points of other packages that belong to it.
            base: the place of the class that all of them derive from, "module:Class".
            built_in: the place of each class by its name, in the order in which lists show them.
            name_of: the name that a class of another package gives itself, from the base and the class; it
                raises a `ClearloopError` where the class is not complete. If it is not given, the class
                variable `name` of a class that needs no settings.
        """
        self.noun, self.group, self._base, self._built_in = noun, group, base, built_in
        self._name_of = name_of or _described_name
        self._loaded: dict[str, type[Any]] = {}

    def find(self, name: str) -> type[Any]:
        """The class of this name.

        A built-in class comes before one of the same name in another package; a warning then says so.

        Raises:
            ClearloopError: there is none, or the package that has it is broken.
        """
        if name not in self:
            hint = did_you_mean(name, self) or f"; expected one of: {', '.join(self)}"
            raise ClearloopError(f"no {self.noun} {quoted(name)}{hint}")
        if name in self._built_in and name in self._others:
            packages = _packages(self._others[name])
            warn(
                f"the {self.noun} '{name}' of {packages} is not used: clearloop has one of this name",
                ClearloopWarning,
                stacklevel=2,
            )
        return self[name]

    def working(self) -> Iterator[type[Any]]:
        """All classes; those of broken packages are left out with a warning."""
        for name in self:
            try:
                yield self[name]
            except ClearloopError as error:
                warn(str(error), ClearloopWarning, stacklevel=2)

    def __getitem__(self, name: str) -> type[Any]:
        if name not in self._loaded:
            if name in self._built_in:
                self._loaded[name] = resolve(self._built_in[name])
            elif name in self._others:
                self._loaded[name] = self._load(name, self._others[name])
        return self._loaded[name]

    def __setitem__(self, name: str, value: type[Any]) -> None:
        self._loaded[name] = value

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._loaded or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._built_in, *sorted(self._others), *self._loaded)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @cached_property
    def _others(self) -> "dict[str, list[EntryPoint]]":
        """The entry points of other packages by name; nothing is imported yet."""
        from importlib.metadata import entry_points

        found: dict[str, list[EntryPoint]] = {}
        try:
            for one in entry_points(group=self.group):
                found.setdefault(one.name, []).append(one)
        except Exception as error:  # whatever stands in the files of some other package
            message = f"{self.noun}s of other packages are left out: an entry_points.txt is damaged: {error}"
            warn(message, ClearloopWarning, stacklevel=2)
        return found

    def _load(self, name: str, entries: "list[EntryPoint]") -> type[Any]:
        about = f"the {self.noun} {quoted(name)} of {_packages(entries)}"
        if len(entries) > 1:
            raise ClearloopError(f"{about}: only one of these packages may have it: uninstall the others")
        try:
            found = entries[0].load()
            self._check(found, name)
        except Exception as error:  # whatever another package does wrong
            reason = str(error) if isinstance(error, ClearloopError) else f"{type(error).__name__}: {error}"
            raise ClearloopError(f"{about} cannot be used: {reason}") from error
        return found  # type: ignore[no-any-return]

    def _check(self, found: Any, name: str) -> None:
        base = resolve(self._base)
        if not isinstance(found, type) or not issubclass(found, base):
            raise ClearloopError(f"it is not a class that derives from {self._base.replace(':', '.')}")
        called = self._name_of(base, found)
        if called != name or not NAME.fullmatch(name):
            raise ClearloopError(
                f"it calls itself {quoted(str(called))}: it needs the name of its entry point, in small "
                "letters, digits and dashes"
            )


def _described_name(base: type[Any], found: type[Any]) -> str:
    """The name of a class that describes itself in class variables, as methods and export targets do."""
    missing = [field for field in base.__annotations__ if not hasattr(found, field)]
    if missing:
        raise ClearloopError(f"{found.__name__} does not define its {', '.join(missing)}")
    found()  # a class that needs settings, or is abstract, says so here
    return str(getattr(found, "name", ""))


def _kind_name(_base: type[Any], found: type[Any]) -> str:
    """The name of a kind of controller: what stands as `kind` in its files."""
    return str(found.model_fields["kind"].default)


def resolve(place: str) -> Any:
    """Import the object at a place such as "clearloop.methods.gprl:GPRL"."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _packages(entries: "list[EntryPoint]") -> str:
    names = [f"{one.dist.name} {one.dist.version}" if one.dist else one.value for one in entries]
    return f"the package {names[0]}" if len(names) == 1 else f"the packages {', '.join(names)}"


METHODS = Registry(
    "method",
    "clearloop.methods",
    "clearloop.methods.method:Method",
    {
        "gprl": "clearloop.methods.gprl:GPRL",
        "fgprl": "clearloop.methods.fgprl:FGPRL",
        "fpsrl": "clearloop.methods.fpsrl:FPSRL",
        "psonn": "clearloop.methods.psonn:PSONN",
        "nfq": "clearloop.methods.nfq:NFQ",
        "pso-p": "clearloop.methods.psop:PSOP",
        "lqr": "clearloop.methods.lqr:LQR",
        "pid": "clearloop.methods.pid:PID",
        "cloning": "clearloop.methods.cloning:Cloning",
    },
)

KINDS = Registry(
    "kind of controller",
    "clearloop.kinds",
    "clearloop.controllers.controller:Controller",
    {
        "equation": "clearloop.controllers.equation:Equation",
        "linear": "clearloop.controllers.linear:Linear",
        "fuzzy": "clearloop.controllers.fuzzy:Fuzzy",
        "pid": "clearloop.controllers.pid:PID",
        "network": "clearloop.controllers.network:NetworkController",
        "greedy-q": "clearloop.controllers.network:GreedyQ",
        "planner": "clearloop.controllers.planner:Planner",
    },
    _kind_name,
)

TARGETS = Registry(
    "export target",
    "clearloop.targets",
    "clearloop.exports.targets:Target",
    {
        "c": "clearloop.exports.c:C",
        "st": "clearloop.exports.structured_text.printing:StructuredText",
        "plcopen": "clearloop.exports.structured_text.plcopen:PLCopen",
        "javascript": "clearloop.exports.javascript:JavaScript",
        "python": "clearloop.exports.python:Python",
        "latex": "clearloop.exports.latex:LaTeX",
        "fmu": "clearloop.exports.fmu:FMU",
    },
)
