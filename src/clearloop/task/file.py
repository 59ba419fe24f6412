"""Task files on disk: the built-in ones, which are TOML files of the package, and the user's own."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.files import read_text

LARGEST_FILE = 256 * 1024  # bytes; the built-in tasks have about two thousand

# Sixteen parts of a dotted key. The tables here need three, and a thousand of them cost tomllib gigabytes.
_DEEP_KEY = re.compile(
    r"""(?<![\w-]) (?: (?: [\w-]++ | "(?:[^"\\\n]|\\.)*+" | '[^'\n]*+' ) [ \t]*+ \. [ \t]*+ ){16}""",
    re.VERBOSE,
)


def builtin_tasks() -> tuple[str, ...]:
    """The names that `Task.load` knows without a file, in alphabetical order."""
    folder = files("clearloop") / "tasks"
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_task(name_or_path: str | Path) -> tuple[str, str]:
    """The text of a built-in task or of a .toml file, and what to call it in messages."""
    name = str(name_or_path)
    if not name.lower().endswith(".toml"):
        return _read_builtin(name), name
    return read_text(name, LARGEST_FILE), name


def _read_builtin(name: str) -> str:
    known = builtin_tasks()
    if name not in known:
        hint = did_you_mean(name, known) or f"; the built-in tasks are: {', '.join(known)}"
        raise ClearloopError(f"no task {quoted(name)}: neither built in nor a .toml file{hint}")
    return (files("clearloop") / "tasks" / f"{name}.toml").read_text(encoding="utf-8")


def parse_toml(text: str, source: str) -> dict[str, Any]:
    too_deep = f"{source}: nested too deeply for a task file"
    if _DEEP_KEY.search(text):
        raise ClearloopError(too_deep)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ClearloopError(too_deep) from error
    except tomllib.TOMLDecodeError as error:
        raise ClearloopError(f"{source}: broken TOML: {error}") from error
    except ValueError as error:
        raise ClearloopError(f"{source}: a number in it has thousands of digits") from error
