"""A batch: logged transitions, as arrays with a row for each observation."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.data.cells import Flags, Floats, Ints
from clearloop.data.episodes import count_failing, last_rows, number_runs, pieces, split_rows, summarize
from clearloop.data.preparation import prepare
from clearloop.data.read import read
from clearloop.data.resampling import in_unit
from clearloop.data.transitions import Transitions, make_transitions
from clearloop.data.write import write
from clearloop.errors import ClearloopError
from clearloop.task import Columns, Task

if TYPE_CHECKING:
    import polars as pl

ARRAYS = ("states", "actions", "episodes", "terminal", "rewards", "times", "setpoints")


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Rows in time order, those of an episode together. Transitions are neighbouring rows of one episode."""

    columns: Columns
    """What the arrays are called in files: `task.columns`."""
    states: Floats
    """[rows, S]"""
    actions: Floats
    """[rows, A], applied in that row; may be NaN in an episode's last row."""
    episodes: Ints
    """[rows]; any labels, which become 0, 1, 2, …; a terminal row ends its episode."""
    terminal: Flags
    """[rows], true in the row of the failed or final state."""
    rewards: Floats | None = None
    """[rows], of the step from this row to the next; may be NaN in an episode's last row."""
    times: Floats | None = None
    """[rows], in seconds."""
    setpoints: Floats | None = None
    """[rows, P], of the P states whose setpoint is a log column; None if there are none."""

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
            raise ClearloopError("batch: setpoints are log columns of this task; give their values")
        if len(self) < 1:
            raise ClearloopError("batch: no two rows follow each other in one episode")
        self._check_finite()

    def _hold(self, name: str, dtype: type | None, shape: tuple[int, ...]) -> None:
        """Makes an array what the class promises: of this type and shape, and read-only."""
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
        """Files, or Minari datasets as `minari:NAME`; the episodes of several files stay apart."""
        paths = [path] if isinstance(path, str | Path) else path
        return cls.concatenate([cls.from_frame(read(one), task, source=str(one)) for one in paths])

    @classmethod
    def from_frame(cls, frame: Any, task: Task, *, source: str = "data") -> Self:
        """A dataframe of polars, pandas or pyarrow. `source` is what errors call it."""
        log = prepare(frame, task)
        if log.problems:
            more = f" (and {len(log.problems) - 1} more)" if len(log.problems) > 1 else ""
            raise ClearloopError(f"{source}: {log.problems[0].message}{more}")
        return cls(task.columns, **{name: getattr(log, name) for name in ARRAYS})

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """One after the other; their episodes stay apart."""
        if len({frozenset(batch._arrays()) for batch in batches}) != 1:
            raise ClearloopError("batch: expected one file or more, all with the same optional columns")
        first = np.cumsum([0, *(batch.episode_count for batch in batches)])
        names = batches[0]._arrays()
        parts = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
        parts["episodes"] = np.concatenate([batch.episodes + first[i] for i, batch in enumerate(batches)])
        return cls(batches[0].columns, **parts)

    def transitions(self, history: int = 1) -> Transitions:
        """All steps, with what was seen and done in the last `history` rows before each."""
        arrays = self.states, self.actions, self.rewards, self.terminal, self.episodes
        return make_transitions(*arrays, history)

    def split(self, share: float, rng: np.random.Generator) -> tuple[Self, Self]:
        """To train on, and held out: about `share` of the transitions, in whole episodes.

        A single episode is split in time: its last part is held out.
        """
        train, held_out = split_rows(self.episodes, share, rng)
        return self._select(train), self._select(held_out)

    def thinned(self, most: int, piece: int) -> Self:
        """About `most` transitions, if there are more: evenly spaced pieces, of so many rows; each begins an
        episode.
        """
        if len(self) <= most:
            return self
        rows, number = pieces(len(self.states), most, piece)
        part = self._select(rows)
        labels = part.episodes * (int(number.max()) + 1) + number
        return replace(part, episodes=labels)

    def _select(self, rows: Ints) -> Self:
        arrays: dict[str, Any] = {name: array[rows] for name, array in self._arrays().items()}
        return replace(self, **arrays)

    def to_frame(self) -> "pl.DataFrame":
        """As it stands in files: the log's own column names, an empty cell for NaN."""
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
        """CSV or Parquet, by extension; `load` with the same task gives the same batch."""
        write(self.to_frame(), path)

    def fingerprint(self) -> str:
        """The same for the same content, wherever it came from: SHA-256, in hexadecimal digits."""
        digest = hashlib.sha256()
        for name, array in self._arrays().items():
            digest.update(f"{name} {array.shape}".encode())
            # One bit pattern for each value: NaN and 0.0 have several.
            canonical = np.where(np.isnan(array), np.nan, array) + 0.0 if array.dtype == np.float64 else array
            digest.update(np.ascontiguousarray(canonical, array.dtype.newbyteorder("<")).data)
        return digest.hexdigest()

    def __len__(self) -> int:
        """The number of transitions."""
        return len(self.episodes) - self.episode_count

    @property
    def episode_count(self) -> int:
        return int(self.episodes[-1]) + 1 if len(self.episodes) else 0

    def __repr__(self) -> str:
        return summarize(len(self), self.episode_count, count_failing(self.episodes, self.terminal))
