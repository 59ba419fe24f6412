"""Minari datasets as logs, and batches as Minari datasets."""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clearloop.data.resampling import in_unit
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl

    from clearloop.data.batch import Batch

PREFIX = "minari:"
NAMES = "clearloop columns: "
"""Begins a dataset's description that tells how its columns are called."""


def minari_name(path: str | Path) -> str | None:
    """`pointmaze/umaze-v2` for `minari:pointmaze/umaze-v2`; None for the path of a file."""
    text = path if isinstance(path, str) else path.as_posix()
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else None


def read_minari(name: str) -> "pl.DataFrame":
    """A local dataset, with columns obs_0, …, action_0, …, unless it says how they are called."""
    import polars as pl

    try:
        dataset = _library().load_dataset(name)
        parts = [_rows(episode, number) for number, episode in enumerate(dataset)]
        given = _given_names(str(dataset.storage.metadata.get("description") or ""))
    except FileNotFoundError as error:
        advice = f"not among your datasets; get it with `minari download {name}`"
        raise ClearloopError(f"{PREFIX}{name}: {advice}") from error
    except (ValueError, TypeError, ImportError, KeyError, OSError) as error:
        raise ClearloopError(f"{PREFIX}{name}: cannot be read: {_line(error)}") from error
    if not parts:
        raise ClearloopError(f"{PREFIX}{name}: holds no episode")
    frame = pl.concat(parts)
    return frame.rename({old: new for old, new in given.items() if old in frame.columns})


def _rows(episode: Any, number: int) -> "pl.DataFrame":
    """A row for each observation; no step follows the last."""
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


def _matrix(values: Any) -> NDArray[np.float64]:
    """[rows, features]"""
    if isinstance(values, dict | tuple):
        raise TypeError("expected observations and actions that are arrays, not dictionaries or tuples")
    array = np.asarray(values, dtype=np.float64)
    return array.reshape(len(array), -1)


def _given_names(description: str) -> dict[str, str]:
    if not description.startswith(NAMES):
        return {}
    try:
        names = json.loads(description.removeprefix(NAMES))
        return {str(old): str(new) for old, new in names.items()}
    except (ValueError, AttributeError):
        return {}


def write_minari(batch: "Batch", name: str) -> None:
    """States and logged setpoints are the observations; the description tells the columns' names."""
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
            warnings.simplefilter("ignore", UserWarning)  # of authors and algorithms that a log does not know
            minari.create_dataset_from_buffers(
                name,
                buffers,
                observation_space=Box(-np.inf, np.inf, (seen.shape[1],), np.float64),
                action_space=Box(-np.inf, np.inf, (batch.actions.shape[1],), np.float64),
                description=NAMES + json.dumps(names),
                data_format="arrow",
            )
    except (ValueError, ImportError, OSError) as error:
        raise ClearloopError(f"{PREFIX}{name}: cannot be written: {_line(error)}") from error


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


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
