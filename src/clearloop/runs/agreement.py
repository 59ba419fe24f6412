"""Whether a run that is to go on is the one that was begun. What differs is named; nothing is guessed."""

from collections.abc import Mapping
from typing import Any

import clearloop
from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.methods import Method
from clearloop.runs.directory import RunDirectory
from clearloop.runs.request import settings_of
from clearloop.task import Task


def check_command(run: RunDirectory, asked: Mapping[str, Any], *commands: str) -> None:
    if (begun := str(asked.get("command"))) not in commands:
        raise ClearloopError(
            f"{run.path}: holds a run of {quoted(f'clearloop {begun}')}, and that cannot go on here:"
            " choose another --out"
        )


def check_version(run: RunDirectory, versions: Mapping[str, str]) -> None:
    if versions.get("clearloop") != clearloop.__version__:
        was, now = f"clearloop {versions.get('clearloop')}", clearloop.__version__
        raise ClearloopError(
            f"{run.path}: was begun with {was}, not {now}, which may search differently: choose another --out"
        )


def check_option(run: RunDirectory, option: str, begun: Any, given: Any) -> None:
    """Of an option that was given again."""
    if begun != given:
        raise ClearloopError(
            f"{run.path}: was begun with {option} {_said(begun)}, not {_said(given)};"
            f" leave {option} out to go on, or choose another --out"
        )


def check_task(run: RunDirectory, begun: Mapping[str, Any], given: Task) -> None:
    now = given.model_dump(mode="json", exclude_none=True)
    if begun.get("name") != given.name:
        raise ClearloopError(
            f"{run.path}: was begun with the task {quoted(str(begun.get('name')))}, not {quoted(given.name)}:"
            " give that one, or choose another --out"
        )
    changed = next((key for key in {**begun, **now} if begun.get(key) != now.get(key)), None)
    if changed is not None:
        raise ClearloopError(
            f"{run.path}: the task {quoted(given.name)} has changed since it was begun, in {quoted(changed)}:"
            " undo that to go on, or choose another --out"
        )


def check_data(run: RunDirectory, fingerprint: str, given: Batch, source: str) -> None:
    if given.fingerprint() != fingerprint:
        raise ClearloopError(
            f"{run.path}: was begun with other data than {source} holds now;"
            " leave --data out to go on with what it was begun with, or choose another --out"
        )


def check_settings(run: RunDirectory, begun: tuple[Method, ...], given: tuple[Method, ...]) -> None:
    """Of the same methods, the second time with what was given again."""
    for one, other in zip(begun, given, strict=True):
        was, now = settings_of(one), settings_of(other)
        for name in was:
            if was[name] != now[name]:
                check_option(run, f"--set {one.name}.{name}", was[name], now[name])


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_said, value))
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
