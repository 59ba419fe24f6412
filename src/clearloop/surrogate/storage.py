"""A surrogate on disk: what a person may want to know as JSON, numbers as safetensors."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError, quoted
from clearloop.files import read_text, whole_file
from clearloop.surrogate.tracks import Track
from clearloop.task import Task

TEXT, NUMBERS = "surrogate.json", "surrogate.safetensors"
LARGEST_TEXT = 1024 * 1024  # bytes

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Header(_Table):
    """`surrogate.json`."""

    clearloop: Literal[1] = 1
    task: str
    states: tuple[str, ...]
    actions: tuple[str, ...]
    history: int
    track: Track
    altered: dict[str, _Finite | None]
    """the states that failure alters, and what it sets them to, if always the same"""
    levels: tuple[_Finite, ...] | None
    """the classes of a learned reward, none if it is a value; null where the task's own is used"""
    failing: tuple[bool, ...] | None
    """whether a step of that class fails"""
    batch: str
    """fingerprint of the data"""
    split_seed: int
    """tells which part of the data was held out"""
    numbers: str = ""
    """SHA-256 of the other file"""

    def check(self, task: Task) -> None:
        ours = (self.states, self.actions, self.history)
        if ours != (task.state_names, task.action_names, task.history):
            raise ClearloopError(
                f"learned for the task {quoted(self.task)}, whose states, actions or history differ"
                f" from those of {quoted(task.name)}: learn it anew"
            )
        if self.levels is None and task.reward_expression is None:
            raise ClearloopError(f"relies on a formula for the reward, and {quoted(task.name)} has none")


def write(folder: str | Path, header: Header, arrays: Mapping[str, Floats]) -> None:
    """Both files, the JSON last: it is there only when all is."""
    from safetensors.numpy import save

    folder = Path(folder)
    content: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    signed = header.model_copy(update={"numbers": hashlib.sha256(content).hexdigest()})
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClearloopError(f"{folder}: cannot be made: {error.strerror or error}") from error
    with whole_file(folder / NUMBERS) as file:
        file.write(content)
    with whole_file(folder / TEXT) as file:
        file.write(f"{signed.model_dump_json(indent=2)}\n".encode())


def read(folder: str | Path) -> tuple[Header, dict[str, Floats]]:
    header = _read_header(Path(folder) / TEXT)
    return header, _read_numbers(Path(folder) / NUMBERS, header.numbers)


def _read_header(path: Path) -> Header:
    try:
        return Header.model_validate_json(read_text(path, LARGEST_TEXT))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise ClearloopError(f"{path}: damaged, or not of a surrogate: {what}") from error


def _read_numbers(path: Path, digest: str) -> dict[str, Floats]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise ClearloopError(
            f"{path}: damaged, or not the one that {TEXT} belongs to: learn and save it anew"
        )
    try:
        arrays: dict[str, Floats] = load(content)
    except SafetensorError as error:
        raise ClearloopError(f"{path}: damaged: {error}") from error
    return arrays
