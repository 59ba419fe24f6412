"""A batch holds logged transitions as arrays, and comes from files of several formats or from a dataframe."""

import hashlib
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.archives import read_archive
from clearloop.data.csv import read_csv
from clearloop.data.log import (
    Log,
    Transitions,
    count_failing,
    first_rows,
    last_rows,
    make_transitions,
    name_columns,
    number_runs,
    pieces,
    read_log,
    setpoint_rows,
    split_rows,
    summarize,
)
from clearloop.data.parquet import check_parquet
from clearloop.data.resampling import in_unit, resample
from clearloop.data.sizes import check_cells, check_file
from clearloop.data.workbooks import check_workbook
from clearloop.errors import ClearloopError, quoted
from clearloop.files import whole_file
from clearloop.showing import Shown
from clearloop.task import Columns, Task

if TYPE_CHECKING:
    import polars as pl


ARRAYS = ("states", "actions", "episodes", "terminal", "rewards", "times", "setpoints")


@dataclass(frozen=True, eq=False, repr=False)
class Batch(Shown):
    """Logged transitions: rows in time order, those of an episode together.

    A transition is a step from a row to the next one of the same episode; `len(batch)` counts them.

    Attributes:
        columns: The names of the arrays' columns in files: `task.columns`.
        states: The measured states [rows, S].
        actions: The actions that were applied in each row [rows, A]; may be NaN in an episode's last row.
        episodes: The episode of each row [rows]; any labels, which become 0, 1, 2, …
        terminal: True in the row of a failed or final state [rows], which ends its episode.
        rewards: The reward of the step from each row to the next [rows]; may be NaN in an episode's last
            row; None if none was logged.
        times: The time of each row in seconds [rows]; None if none was logged.
        setpoints: The setpoints of the P states whose setpoint is a log column [rows, P]; None if P is 0.
    """

    columns: Columns
    states: Floats
    actions: Floats
    episodes: Ints
    terminal: Flags
    rewards: Floats | None = None
    times: Floats | None = None
    setpoints: Floats | None = None

    def __post_init__(self) -> None:
        rows, columns = len(self.states), self.columns
        self._hold("states", np.float64, (rows, len(columns.states)))
        self._hold("actions", np.float64, (rows, len(columns.actions)))
        self._hold("setpoints", np.float64, (rows, len(columns.setpoints)))
        self._hold("rewards", np.float64, (rows,))
        self._hold("times", np.float64, (rows,))
        self._hold("terminal", np.bool_, (rows,))
        self._hold("episodes", None, (rows,))
        object.__setattr__(self, "episodes", number_runs(self.episodes, self.terminal))
        if columns.setpoints and self.setpoints is None:
            raise ClearloopError("batch: this task reads setpoints from log columns; give their values")
        if len(self) < 1:
            raise ClearloopError("batch: no two rows follow each other in one episode")
        self._check_finite()

    def _hold(self, name: str, dtype: type | None, shape: tuple[int, ...]) -> None:
        """Give an array the type and shape that the class promises, and make it read-only."""
        if getattr(self, name) is None:
            return
        array = np.ascontiguousarray(getattr(self, name), dtype=dtype).view()
        if array.shape != shape:
            raise ClearloopError(f"batch: {name} has the shape {array.shape}, expected {shape}")
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    def _check_finite(self) -> None:
        last = last_rows(self.episodes)
        for name, array in self._arrays().items():
            cells = array.reshape(len(last), -1)
            finite = np.isfinite(cells).all(axis=1)
            if name in ("actions", "rewards"):
                finite |= last & ~np.isinf(cells).any(axis=1)
            if not finite.all():
                raise ClearloopError(f"batch: {name} has no finite number in row {np.argmin(finite) + 1:,}")

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}

    @classmethod
    def load(cls, path: str | Path | Sequence[str | Path], task: Task) -> Self:
        """Load a batch from one or more logs.

        Args:
            path: A file, or a Minari dataset as `minari:NAME`; or several, whose episodes stay apart.
            task: The task that says which columns to read.

        Raises:
            ClearloopError: A log cannot be read, or has a problem that forbids learning from it.
        """
        paths = [path] if isinstance(path, str | Path) else path
        return cls.concatenate([cls.from_frame(read(one), task, source=str(one)) for one in paths])

    @classmethod
    def from_frame(cls, frame: Any, task: Task, *, source: str = "data") -> Self:
        """Make a batch from a dataframe.

        Args:
            frame: A dataframe of polars, pandas or pyarrow.
            task: The task that says which columns to read.
            source: What errors call the dataframe.

        Raises:
            ClearloopError: The log has a problem that forbids learning from it.
        """
        try:
            log = prepare_log(task, frame)
        except ClearloopError as error:
            raise ClearloopError(f"{source}: {error}") from error
        if log.problems:
            more = f" (and {len(log.problems) - 1} more)" if len(log.problems) > 1 else ""
            raise ClearloopError(f"{source}: {log.problems[0].message}{more}")
        return cls(task.columns, **{name: getattr(log, name) for name in ARRAYS})

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Join batches one after the other; their episodes stay apart."""
        if len({frozenset(batch._arrays()) for batch in batches}) != 1:
            raise ClearloopError("batch: expected one file or more, all with the same optional columns")
        first = np.cumsum([0, *(batch.episode_count for batch in batches)])
        names = batches[0]._arrays()
        parts = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
        parts["episodes"] = np.concatenate([batch.episodes + first[i] for i, batch in enumerate(batches)])
        return cls(batches[0].columns, **parts)

    def transitions(self, history: int = 1, before: Floats | None = None) -> Transitions:
        """Return all steps, each with the states and actions of its last `history` rows.

        Args:
            history: The number of rows, the present one included.
            before: [A] the actions before an episode's start; None: 0.
        """
        arrays = self.states, self.actions, self.rewards, self.terminal, self.episodes
        return make_transitions(*arrays, history, before)

    def split(self, share: float, rng: np.random.Generator) -> tuple[Self, Self]:
        """Split the batch into a part to train on and a part to hold out, by whole episodes.

        A single episode is split in time: its last part is held out.

        Args:
            share: The share of the transitions to hold out, about.
            rng: The source of randomness.
        """
        train, held_out = split_rows(self.episodes, share, rng)
        return self._select(train), self._select(held_out)

    def thinned(self, most: int, piece: int, *, whole: bool = False) -> Self:
        """Keep evenly spaced pieces of the batch, each as an episode of its own.

        Args:
            most: The number of transitions to keep, about; a batch that has no more stays as it is.
            piece: The rows of a piece.
            whole: Keep whole episodes instead, so that what begins an episode did so in the log.
        """
        if len(self) <= most:
            return self
        if whole:
            every = len(self) / most  # of so many episodes, one is kept
            kept = np.floor(np.arange(self.episode_count) / every)
            return self._select(np.flatnonzero(np.isin(self.episodes, np.unique(kept, return_index=True)[1])))
        rows, number = pieces(len(self.states), most, piece)
        part = self._select(rows)
        labels = part.episodes * (int(number.max()) + 1) + number
        return replace(part, episodes=labels)

    def _select(self, rows: Ints) -> Self:
        arrays: dict[str, Any] = {name: array[rows] for name, array in self._arrays().items()}
        return replace(self, **arrays)

    def to_frame(self) -> "pl.DataFrame":
        """Return the batch as files hold it: with the log's column names, and empty cells for NaN."""
        import polars as pl

        names = self.columns
        series: dict[str, NDArray[Any]] = {names.episode: self.episodes}
        if self.times is not None:
            series[names.time] = in_unit(self.times, names.time_unit)
        series |= dict(zip(names.states, self.states.T, strict=True))
        series |= dict(zip(names.actions, self.actions.T, strict=True))
        if self.setpoints is not None:
            series |= dict(zip(names.setpoints, self.setpoints.T, strict=True))
        if self.rewards is not None:
            series[names.reward] = self.rewards
        return pl.DataFrame(series | {names.terminal: self.terminal}).fill_nan(None)

    def save(self, path: str | Path) -> None:
        """Write a CSV or Parquet file, by extension; `load` with the same task gives the same batch."""
        write(self.to_frame(), path)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the content in hexadecimal digits; it does not depend on the file format."""
        digest = hashlib.sha256()
        for name, array in self._arrays().items():
            digest.update(f"{name} {array.shape}".encode())
            # NaN and 0.0 have several bit patterns; one is chosen for each.
            canonical = np.where(np.isnan(array), np.nan, array) + 0.0 if array.dtype == np.float64 else array
            digest.update(np.ascontiguousarray(canonical, array.dtype.newbyteorder("<")).data)
        return digest.hexdigest()

    def __len__(self) -> int:
        """Count the transitions."""
        return len(self.episodes) - self.episode_count

    @property
    def episode_count(self) -> int:
        """The number of episodes."""
        return int(self.episodes[-1]) + 1 if len(self.episodes) else 0

    def __repr__(self) -> str:
        terminal = count_failing(self.episodes, self.terminal)
        return summarize(len(self), self.episode_count, terminal, self.columns.ends)


# From a dataframe to a log.


def prepare_log(task: Task, frame: Any) -> Log:
    """Read a dataframe as the task asks for: put on the task's grid, with derived states computed.

    A log with problems is left as it was read; it lists all of them.
    """
    log = resample(task, read_log(name_columns(from_any(frame), task.columns), task.columns))
    return log if log.problems else _with_derived_states(task, log)


def _with_derived_states(task: Task, log: Log) -> Log:
    if not task.derived:
        return log
    from clearloop.programs import derive_rows

    seen = np.nan_to_num(log.states, nan=0.0)
    aims = setpoint_rows(task, log.setpoints, len(seen))
    first = first_rows(log.episodes)
    return replace(log, states=derive_rows(task, task.derived, seen, log.actions, aims, first, task.history))


# From a file, or a dataframe of another library, to a polars frame.


def read(path: str | Path) -> "pl.DataFrame":
    """Read a log as it stands, without knowing what its columns mean.

    Args:
        path: A CSV, Parquet, Excel or NumPy file, told apart by its extension; or `minari:NAME`.

    Raises:
        ClearloopError: The file cannot be read, or is damaged.
    """
    import polars as pl

    if (name := minari_name(path)) is not None:
        return read_minari(name)
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ClearloopError(f"{path}: expected a file that ends in {', '.join(READERS)}, or minari:NAME")
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ClearloopError(f"{quoted(str(path))}: the name of this file is not UTF-8: rename it") from error
    try:
        check_file(path)
        with path.open("rb"):  # fails for a missing file, a folder or a lack of rights, in the system's words
            pass
        return _without_blanks(reader(path))
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ClearloopError as error:
        raise ClearloopError(f"{path}: {error}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ClearloopError(
            f"{path}: is damaged, or is not a {path.suffix[1:]} file: {first_line(error)}"
        ) from error


def _without_blanks(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Strip names: `# time, theta` is a header of `time` and `theta`, unless two would have one name."""
    names = [name.strip() for name in frame.columns]
    names[:1] = [name.lstrip("#% ") or name for name in names[:1]]
    if len(set(names)) < len(names):
        return frame
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _read_parquet(path: Path) -> "pl.DataFrame":
    import polars as pl

    check_parquet(path)
    return pl.read_parquet(path, glob=False, hive_partitioning=False)


def _read_excel(path: Path) -> "pl.DataFrame":
    """Read the first sheet of a workbook."""
    import polars as pl

    try:
        import fastexcel
    except ImportError as error:
        raise ClearloopError("Excel files need an extra: pip install 'clearloop[excel]'") from error
    check_workbook(path)
    try:
        if not fastexcel.read_excel(path).sheet_names:
            raise ClearloopError("holds no sheet")
        return pl.read_excel(path, infer_schema_length=None)
    except fastexcel.FastExcelError as error:
        raise ClearloopError(f"is damaged, or is not an Excel file: {first_line(error)}") from error


READERS = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
    ".npz": read_archive,
}


def from_any(frame: Any) -> "pl.DataFrame":
    """Convert a dataframe of any library that narwhals knows: polars, pandas, pyarrow, …"""
    import narwhals.stable.v2 as nw
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    try:
        converted: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    except (TypeError, ValueError, ImportError, pl.exceptions.PolarsError) as error:
        raise ClearloopError(
            f"expected a dataframe with one type in each column: {first_line(error)}"
        ) from error
    return converted


def first_line(error: BaseException) -> str:
    """Return the first line of a library's error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# From a polars frame to a file.


def write(frame: "pl.DataFrame", path: str | Path) -> None:
    """Write a frame as a CSV or Parquet file, by extension."""
    import polars as pl

    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ClearloopError(f"{path}: expected a name that ends in .csv or .parquet")
    try:
        with whole_file(path) as file:
            frame.write_csv(file) if suffix == ".csv" else frame.write_parquet(file)
    except pl.exceptions.PolarsError as error:
        raise ClearloopError(f"{path}: cannot be written: {first_line(error)}") from error


# Minari datasets.

_PREFIX = "minari:"
_NAMES = "clearloop columns: "
"""The beginning of a dataset's description that holds the names of its columns."""


def minari_name(path: str | Path) -> str | None:
    """Return `pointmaze/umaze-v2` for `minari:pointmaze/umaze-v2`; None for the path of a file."""
    text = path if isinstance(path, str) else path.as_posix()
    return text.removeprefix(_PREFIX) if text.startswith(_PREFIX) else None


def read_minari(name: str) -> "pl.DataFrame":
    """Read a local dataset, with columns obs_0, …, action_0, …, or the names that its description holds."""
    import polars as pl

    try:
        dataset = _library().load_dataset(name)
        check_cells(dataset.total_steps + dataset.total_episodes, _width(dataset))
        parts = [_rows(episode, number) for number, episode in enumerate(dataset)]
        given = _given_names(str(dataset.storage.metadata.get("description") or ""))
    except FileNotFoundError as error:
        advice = f"is not among your datasets; get it with `minari download {name}`"
        raise ClearloopError(f"{_PREFIX}{name}: {advice}") from error
    except ClearloopError as error:
        raise ClearloopError(f"{_PREFIX}{name}: {error}") from error
    except (ValueError, TypeError, ImportError, KeyError, OSError) as error:
        raise ClearloopError(f"{_PREFIX}{name}: cannot be read: {first_line(error)}") from error
    if not parts:
        raise ClearloopError(f"{_PREFIX}{name}: holds no episode")
    frame = pl.concat(parts)
    return frame.rename({old: new for old, new in given.items() if old in frame.columns})


def _rows(episode: Any, number: int) -> "pl.DataFrame":
    """Return a row for each observation; no step follows the last one."""
    import polars as pl

    observations, actions = _matrix(episode.observations), _matrix(episode.actions)
    steps = len(episode.rewards)
    if len(observations) != steps + 1 or len(actions) != steps:
        raise ValueError(f"episode {number} has {len(observations)} observations and {steps} rewards")
    last = np.full((1, actions.shape[1]), np.nan)
    columns: dict[str, NDArray[Any]] = {"episode": np.full(steps + 1, number)}
    times = np.asarray((episode.infos or {}).get("time", ()))
    if times.size == steps + 1:  # in a column: Minari cannot read back what is flat
        columns["time"] = times.ravel()
    columns |= {f"obs_{i}": column for i, column in enumerate(observations.T)}
    columns |= {f"action_{i}": column for i, column in enumerate(np.concatenate([actions, last]).T)}
    columns["reward"] = np.append(np.asarray(episode.rewards, dtype=np.float64), np.nan)
    columns["terminal"] = np.append(np.zeros(steps, dtype=np.bool_), steps and bool(episode.terminations[-1]))
    return pl.DataFrame(columns).fill_nan(None)


def _width(dataset: Any) -> int:
    """Return the number of columns that a dataset becomes, as far as its spaces tell."""
    spaces = dataset.observation_space, dataset.action_space
    return 3 + sum(math.prod(space.shape or (1,)) for space in spaces)


def _matrix(values: Any) -> NDArray[np.float64]:
    """Return values as a matrix [rows, features]."""
    if isinstance(values, dict | tuple):
        raise TypeError("expected observations and actions that are arrays, not dictionaries or tuples")
    array = np.asarray(values, dtype=np.float64)
    return array.reshape(len(array), -1)


def _given_names(description: str) -> dict[str, str]:
    if not description.startswith(_NAMES):
        return {}
    try:
        names = json.loads(description.removeprefix(_NAMES))
        return {str(old): str(new) for old, new in names.items()}
    except (ValueError, AttributeError):
        return {}


def write_minari(batch: "Batch", name: str) -> None:
    """Write a batch as a local Minari dataset.

    Its observations are the states and the logged setpoints; its description holds the columns' names.
    """
    minari = _library()
    from gymnasium.spaces import Box
    from minari.data_collector.episode_buffer import EpisodeBuffer

    setpoints = [] if batch.setpoints is None else [batch.setpoints]
    seen = np.concatenate([batch.states, *setpoints], axis=1)
    rewards = np.zeros(len(seen)) if batch.rewards is None else batch.rewards
    times = None if batch.times is None else in_unit(batch.times, batch.columns.time_unit)
    buffers = []
    for number, rows in enumerate(_runs(batch.episodes)):
        steps = rows[:-1]
        if not len(steps):
            continue
        ends = np.zeros(len(steps), dtype=np.bool_)
        ends[-1] = True
        terminal = bool(batch.terminal[rows[-1]])
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=seen[rows],
                actions=batch.actions[steps],
                rewards=rewards[steps].tolist(),
                terminations=(ends & terminal).tolist(),
                truncations=(ends & (not terminal)).tolist(),
                infos=None if times is None else {"time": times[rows, None]},
            )
        )
    columns = batch.columns
    names = _numbered("obs", (*columns.states, *columns.setpoints)) | _numbered("action", columns.actions)
    names |= {
        "time": columns.time,
        "reward": columns.reward,
        "terminal": columns.terminal,
        "episode": columns.episode,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # on authors and algorithms, which a log does not name
            minari.create_dataset_from_buffers(
                name,
                buffers,
                observation_space=Box(-np.inf, np.inf, (seen.shape[1],), np.float64),
                action_space=Box(-np.inf, np.inf, (batch.actions.shape[1],), np.float64),
                description=_NAMES + json.dumps(names),
                data_format="arrow",
            )
    except (ValueError, ImportError, OSError) as error:
        raise ClearloopError(f"{_PREFIX}{name}: cannot be written: {first_line(error)}") from error


def _numbered(stem: str, names: Sequence[str]) -> dict[str, str]:
    return {f"{stem}_{number}": name for number, name in enumerate(names)}


def _runs(episodes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.split(np.arange(len(episodes)), np.flatnonzero(np.diff(episodes)) + 1)


def _library() -> Any:
    try:
        import minari
    except ImportError as error:
        raise ClearloopError("Minari datasets need an extra: pip install 'clearloop[minari]'") from error
    return minari
