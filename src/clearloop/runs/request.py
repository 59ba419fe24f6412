"""What was asked of a run, resolved in full: another run of the same request gives the same front."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from clearloop.errors import ClearloopError
from clearloop.methods import Method
from clearloop.methods.registry import find_method


@dataclass(frozen=True, kw_only=True)
class Request:
    command: str
    """of `clearloop`"""
    task: str
    """a built-in name or a file, as it was given"""
    data: tuple[str, ...] = ()
    """files, as they were given; none if the task's plant made the batch"""
    methods: tuple[Method, ...]
    """with all their settings, in the order of the front"""
    budget: int
    """steps of the model, for each method"""
    track: str = "best"
    value: str = "model"
    """what searches minimise: of rollouts on the "model", or of the "batch" alone"""
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "command": self.command,
            "task": self.task,
            "data": list(self.data),
            "methods": {method.name: settings_of(method) for method in self.methods},
            "budget": self.budget,
            "track": self.track,
            "value": self.value,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, asked: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        try:
            methods = tuple(_method(name, settings) for name, settings in asked["methods"].items())
            return cls(
                command=str(asked["command"]),
                task=str(asked["task"]),
                data=tuple(map(str, asked["data"])),
                methods=methods,
                budget=int(asked["budget"]),
                track=str(asked["track"]),
                value=str(asked["value"]),
                seed=int(asked["seed"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ClearloopError("run.json: damaged: it does not say what was asked") from error


def settings_of(method: Method) -> dict[str, Any]:
    """JSON values by the names of fields."""
    settings: dict[str, Any] = TypeAdapter(type(method)).dump_python(method, mode="json")
    return settings


def changed_settings(settings: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    """Those that differ from the defaults, as `--set` takes them: `gp.population=80`, `rules=2,4`."""
    for name, value in settings.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict):
            yield from (f"{name}.{inner}" for inner in changed_settings(value, default))
        elif value != default:
            yield f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"


def _method(name: str, settings: dict[str, Any]) -> Method:
    try:
        return TypeAdapter(find_method(name)).validate_python(settings)
    except ValidationError as error:
        place = ".".join(("methods", name, *map(str, error.errors()[0]["loc"])))
        raise ClearloopError(f"run.json: damaged: {place}: {error.errors()[0]['msg']}") from error
