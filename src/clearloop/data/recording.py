"""A log of random actions in a Gymnasium environment can be recorded for trying things out."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    import polars as pl


def record(environment: str, steps: int, seed: int) -> "pl.DataFrame":
    """Record random actions in an environment.

    Args:
        environment: The id of a Gymnasium environment.
        steps: The number of steps to take.
        seed: The seed of the environment and of the actions.

    Returns:
        A row for each observation, with columns obs_0, …, action_0, …, reward, terminal and episode.

    Raises:
        ClearloopError: There is no such environment, or its spaces are not vectors of numbers.
    """
    import gymnasium
    import polars as pl

    try:
        env: gymnasium.Env[Any, Any] = gymnasium.make(environment)
    except (gymnasium.error.Error, ImportError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())
        raise ClearloopError(f"{environment}: there is no such Gymnasium environment here: {said}") from error
    try:
        _check_spaces(environment, env.observation_space, env.action_space)
        env.action_space.seed(seed)
        rows = _rows(env, steps, seed)
    finally:
        env.close()
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def _check_spaces(environment: str, seen: Any, done: Any) -> None:
    from gymnasium.spaces import Box, Discrete

    if not isinstance(seen, Box) or len(seen.shape) != 1:
        raise ClearloopError(f"{environment}: observes {seen}; expected a vector of numbers (a Box)")
    if not isinstance(done, Discrete) and (not isinstance(done, Box) or len(done.shape) != 1):
        raise ClearloopError(f"{environment}: takes {done}; expected numbers (a Box), or a choice (Discrete)")
    if isinstance(done, Box) and not np.isfinite([done.low, done.high]).all():
        raise ClearloopError(f"{environment}: its actions have no limits to draw random ones between")


def _rows(env: Any, steps: int, seed: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    episode, taken = 0, 0
    while taken < steps:
        nothing = np.full(env.action_space.shape or 1, np.nan)
        seen, _ = env.reset(seed=seed if episode == 0 else None)
        over = terminal = False
        while not over:
            action = env.action_space.sample()
            after, reward, terminal, truncated, _ = env.step(action)
            taken += 1
            over = terminal or truncated or taken == steps
            rows.append(_row(episode, seen, np.atleast_1d(action), float(reward), False))
            seen = after
        rows.append(_row(episode, seen, nothing, np.nan, bool(terminal)))
        episode += 1
    return rows


def _row(
    episode: int, seen: NDArray[Any], action: NDArray[Any], reward: float, terminal: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {"episode": episode}
    row |= {f"obs_{number}": float(value) for number, value in enumerate(seen)}
    row |= {f"action_{number}": float(value) for number, value in enumerate(action)}
    return row | {"reward": reward, "terminal": terminal}
