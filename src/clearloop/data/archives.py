"""NumPy archives, as D4RL and NeoRL keep logs, become tables with a row for each observation.

An archive has a row for each transition: what was observed, what was done, what was observed next. A log of
ours has a row for each observation, so the observation after an episode's last step becomes a row of its own.

Nothing in an archive is trusted: every array is read only after its header has said what it holds, and how
much, and after that agrees with the archive's own list. Pickled objects are refused.
"""

import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.sizes import check_cells, check_unpacked
from clearloop.errors import ClearloopError, quoted

if TYPE_CHECKING:
    import polars as pl

NAMES: Mapping[str, tuple[str, ...]] = {
    "obs": ("obs", "observations"),
    "action": ("action", "actions"),
    "next_obs": ("next_obs", "next_observations"),
    "reward": ("reward", "rewards"),
    "done": ("done", "dones", "terminals"),
    "truncated": ("truncated", "timeouts"),
}
"""The names that an array may have, by the name that we use."""

_NEEDED = ("obs", "action")
_LONGEST_HEADER = 10_000  # characters; the header of a plain array has about a hundred
_MOST_ARRAYS = 10_000  # of an archive, most of which are not read
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,  # this and the next come from a header, which is parsed as a literal
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OverflowError,
    TypeError,
    ValueError,
)
"""What damaged archives raise."""
_SAME = 1e-5  # relative difference up to which two observations are the same, in single precision


def read_archive(path: Path) -> "pl.DataFrame":
    """Read a NumPy archive (.npz) as a log, with columns obs_0, …, action_0, …, reward, terminal, episode.

    An episode ends where `done` or `truncated` is set, and where the next row does not begin with what this
    row observed next. `terminal` is set in the row that follows a step which was `done`.

    Raises:
        ClearloopError: The file is damaged, too large, or holds something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _frame(_read_arrays(archive))
    except _DAMAGED as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ClearloopError(f"is damaged, or is not a NumPy archive: {why}") from error


# The arrays of the file.


def _read_arrays(archive: zipfile.ZipFile) -> dict[str, NDArray[Any]]:
    """Read the arrays that make a log, by our names, after the sizes of all of them have been checked."""
    members = archive.infolist()
    if len(members) > _MOST_ARRAYS:
        raise ClearloopError(f"holds {len(members):,} arrays: keep only those of the log")
    there = {member.filename.removesuffix(".npy"): member for member in members}
    found = {ours: next((name for name in names if name in there), None) for ours, names in NAMES.items()}
    for ours in _NEEDED:
        if found[ours] is None:
            listed = ", ".join(quoted(name) for name in list(there)[:20]) or "none"
            expected = " or ".join(quoted(name) for name in NAMES[ours])
            raise ClearloopError(f"holds no array {expected}; its arrays are: {listed}")
    chosen = {ours: there[name] for ours, name in found.items() if name is not None}
    check_unpacked(sum(member.file_size for member in chosen.values()))
    shapes = {}
    for ours, member in chosen.items():
        with archive.open(member) as file:
            shapes[ours] = _header(file, member)[0]
    rows = _rows(shapes, {ours: name for ours, name in found.items() if name is not None})
    widths = {ours: math.prod(shape[1:]) for ours, shape in shapes.items()}
    check_cells(2 * rows, sum(widths.values()))  # at worst, each transition is an episode of its own
    return {ours: _read_array(archive, member) for ours, member in chosen.items()}


def _rows(shapes: Mapping[str, tuple[int, ...]], names: Mapping[str, str]) -> int:
    """Return the number of transitions, which all arrays must agree on."""
    rows = shapes["obs"][0] if shapes["obs"] else 0
    for ours, shape in shapes.items():
        width = 1 if ours in ("reward", "done", "truncated") else None
        if not shape or shape[0] != rows or (width and math.prod(shape[1:]) != width):
            expected = f"({rows:,},)" if width else f"({rows:,}, …)"
            raise ClearloopError(f"array {quoted(names[ours])} has the shape {shape}, expected {expected}")
    if "next_obs" in shapes and shapes["next_obs"] != shapes["obs"]:
        both = f"{shapes['next_obs']} and {shapes['obs']}"
        raise ClearloopError(f"next and present observations have different shapes: {both}")
    if not rows or not math.prod(shapes["obs"][1:]) or not math.prod(shapes["action"][1:]):
        raise ClearloopError("holds no transition")
    return rows


def _header(file: IO[bytes], member: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and type of an array, which must fill the member exactly."""
    name = quoted(member.filename.removesuffix(".npy"))
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ClearloopError(f"array {name} has the format {version[0]}.{version[1]}, which is unknown")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on Python 2, if a header must be read twice
        shape, columns_first, dtype = read(file, max_header_size=_LONGEST_HEADER)
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise ClearloopError(f"array {name} holds {dtype} and not numbers: write it as float32 or float64")
    if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
        raise ClearloopError(f"array {name} is damaged: its size and its header do not agree")
    return shape, columns_first, dtype


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        shape, columns_first, dtype = _header(file, member)
        content = file.read()
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise ClearloopError(f"array {quoted(member.filename)} is damaged: it ends early")
    array = np.frombuffer(content, dtype)
    return array.reshape(shape, order="F" if columns_first else "C")


# The table.


def _frame(arrays: Mapping[str, NDArray[Any]]) -> "pl.DataFrame":
    import polars as pl

    observed, acted = _matrix(arrays["obs"]), _matrix(arrays["action"])
    after = _matrix(arrays["next_obs"]) if "next_obs" in arrays else None
    done = _flags(arrays, "done", len(observed))
    ends = _ends(observed, after, done | _flags(arrays, "truncated", len(observed)))
    rows, episode = _places(ends, after is not None)
    last = np.flatnonzero(ends)
    more = len(rows) + (0 if after is None else len(last))
    behind = rows[last] + 1  # the rows of the observations after the last steps

    def column(values: Floats, final: Floats | float) -> Floats:
        whole = np.empty(more)
        whole[rows] = values
        if after is not None:
            whole[behind] = final
        return whole

    columns: dict[str, NDArray[Any]] = {}
    for i, values in enumerate(observed.T):
        columns[f"obs_{i}"] = column(values, np.nan if after is None else after[last, i])
    for i, values in enumerate(acted.T):
        columns[f"action_{i}"] = column(values, np.nan)
    if "reward" in arrays:
        columns["reward"] = column(_matrix(arrays["reward"])[:, 0], np.nan)
    terminal = np.zeros(more, dtype=np.bool_)
    if after is not None:
        terminal[behind] = done[last]
    labels = np.empty(more, dtype=np.int64)
    labels[rows] = episode
    if after is not None:
        labels[behind] = episode[last]
    columns |= {"terminal": terminal, "episode": labels}
    return pl.DataFrame(columns).fill_nan(None)


def _matrix(array: NDArray[Any]) -> Floats:
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


def _flags(arrays: Mapping[str, NDArray[Any]], name: str, rows: int) -> Flags:
    if name not in arrays:
        return np.zeros(rows, dtype=np.bool_)
    values = arrays[name].reshape(-1)
    odd = np.flatnonzero((values != 0) & (values != 1))
    if len(odd):
        where = f"row {odd[0] + 1:,} of {quoted(name)}"
        raise ClearloopError(f"{where} is {float(values[odd[0]]):g}: expected 0 or 1")
    return np.asarray(values != 0)


def _ends(observed: Floats, after: Floats | None, ended: Flags) -> Flags:
    """Return which transitions [n] are the last ones of their episode."""
    ends = ended.copy()
    ends[-1] = True
    if after is not None:
        apart = np.abs(after[:-1] - observed[1:])
        size = np.nanmax(np.abs(observed), axis=0, initial=0.0)
        ends[:-1] |= ~(apart <= _SAME * (np.abs(observed[1:]) + size)).all(axis=1)
    return ends


def _places(ends: Flags, with_last: bool) -> tuple[Ints, Ints]:
    """Return the row and the episode of each transition [n]; each episode has one more row for its end."""
    episode: Ints = np.cumsum(ends) - ends
    return np.arange(len(ends)) + (episode if with_last else 0), episode
