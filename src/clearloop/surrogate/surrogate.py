"""The model of a plant that controllers are searched on: an ensemble of networks, learned from a batch."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clearloop.arrays import Flags, Floats
from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.files import read_text, whole_file
from clearloop.kernels.engine import System
from clearloop.networks import Ensemble, Progress, pack_networks, unpack_networks
from clearloop.numbers import counted
from clearloop.programs import derive_after, unbounded
from clearloop.surrogate.fitting import (
    KnownReward,
    LearnedReward,
    Noise,
    find_noise,
    fit_dynamics,
    fit_reward,
    lower_dynamics,
    lower_networks,
)
from clearloop.surrogate.steps import BEST, FailureEffect, Lesson, Steps, Track, portion, split
from clearloop.task import Task

# A surrogate on disk: what a person may want to know as JSON, numbers as safetensors.

TEXT, _NUMBERS = "surrogate.json", "surrogate.safetensors"
LARGEST_TEXT = 1024 * 1024  # bytes

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SurrogateHeader(_Table):
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


def write_files(folder: str | Path, header: SurrogateHeader, arrays: Mapping[str, Floats]) -> None:
    """Both files, the JSON last: it is there only when all is."""
    from safetensors.numpy import save

    folder = Path(folder)
    content: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    signed = header.model_copy(update={"numbers": hashlib.sha256(content).hexdigest()})
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClearloopError(f"{folder}: cannot be made: {error.strerror or error}") from error
    with whole_file(folder / _NUMBERS) as file:
        file.write(content)
    with whole_file(folder / TEXT) as file:
        file.write(f"{signed.model_dump_json(indent=2)}\n".encode())


def read_files(folder: str | Path) -> tuple[SurrogateHeader, dict[str, Floats]]:
    header = _read_header(Path(folder) / TEXT)
    return header, _read_numbers(Path(folder) / _NUMBERS, header.numbers)


def _read_header(path: Path) -> SurrogateHeader:
    try:
        return SurrogateHeader.model_validate_json(read_text(path, LARGEST_TEXT))
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


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    """M members; each has a network for the change of each of the K predicted states, and judges rewards."""

    task: Task
    track: Track
    """what it was learned with"""
    dynamics: Ensemble
    """[M][K] networks from the window of H (S + A) states and actions to a state's change"""
    reward: KnownReward | LearnedReward
    failure: FailureEffect
    """what failure was seen to do to states"""
    region: Floats
    """[H (S + A), 2] the smallest and the largest of each input in the data that it was trained on"""
    batch: str
    """fingerprint of the data"""
    split_seed: int
    """tells which part of the data was held out"""
    noise: Noise = field(default_factory=Noise.none)
    """what was left unexplained, if it is not negligible"""

    @classmethod
    def fit(
        cls,
        task: Task,
        batch: Batch,
        *,
        track: Track = BEST,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from a batch; the same generator gives the same surrogate, bit by bit."""
        if not task.predicted:
            raise ClearloopError(
                f"task '{task.name}': there is nothing to predict, so no model can be learned: every state "
                "comes from outside or has a formula; what actions move must have neither"
            )
        seed = int(rng.integers(2**32))
        lesson = Lesson.of(task, batch, track, seed)
        known = track.known_reward and task.reward_expression is not None
        share = len(task.predicted) / (len(task.predicted) + (not known))  # of the networks, in the dynamics
        dynamics = fit_dynamics(lesson, rng=rng, progress=portion(progress, 0.0, share))
        reward: KnownReward | LearnedReward = KnownReward(task)
        if not known:
            reward = fit_reward(lesson, rng=rng, progress=portion(progress, share, 1.0 - share))
        window = lesson.training.window
        region = np.stack([window.min(axis=0), window.max(axis=0)], axis=1)
        fitted = cls(task, track, dynamics, reward, lesson.failure, region, batch.fingerprint(), seed)
        return replace(fitted, noise=fitted._find_noise(lesson.held_out))

    def __post_init__(self) -> None:
        predicted, inputs = len(self.task.predicted), self.task.history * len(self.task.scope.names)
        networks = [network.sizes for member in self.dynamics for network in member]
        fits = (
            [len(member) for member in self.dynamics] == [predicted] * self.track.members
            and {(sizes[0], sizes[-1]) for sizes in networks} == {(inputs, 1)}
            and self.region.shape == (inputs, 2)
            and self.noise.residuals.shape in ((len(self.noise.last), predicted), (0, 0))
            and self.reward.fits(self.members)
        )
        if not fits:
            raise ClearloopError(
                f"surrogate of {self.task.name}: its networks do not fit the task: learn it anew"
            )

    @property
    def members(self) -> int:
        return len(self.dynamics)

    @property
    def bounds(self) -> Floats:
        """[S, 2] which states can be reached."""
        bounds = unbounded(len(self.task.states))
        if self.track.reach is not None:
            places = self._places(self.task.predicted)
            low, high = self.region[places].T
            far = self.track.reach * (high - low)
            bounds[places] = np.clip(np.stack([low - far, high + far], axis=1), *bounds[0])
        return bounds

    @property
    def search_members(self) -> tuple[int, ...]:
        """Those to search controllers with."""
        return tuple(range(self.track.search))

    @property
    def judge_members(self) -> tuple[int, ...]:
        """Those to judge what was found: others, if there are any."""
        return tuple(range(self.track.search, self.members)) or self.search_members

    def predict(
        self,
        window: Floats,
        member: int,
        *,
        after: Floats | None = None,
        setpoints: Floats | None = None,
        noise: Floats | float = 0.0,
    ) -> Floats:
        """The next states [n, S] for windows [n, H (S + A)]: what the engine does, in double precision.

        `after`: [n, S] what was seen then, for the states that come from outside; otherwise they stay.
        `setpoints`: [n, S] after the step, for states that are derived with them. `noise`: [n, K].
        """
        task = self.task
        predicted, external = self._places(task.predicted), self._places(task.scope.external)
        states = window[:, : len(task.states)].copy()
        changes = np.stack([network(window)[:, 0] for network in self.dynamics[member]], axis=1)
        states[:, predicted] += changes + noise
        np.clip(states, *self.bounds.T, out=states)
        if after is not None:
            states[:, external] = after[:, external]
        if task.derived:
            frame = np.hstack([states, window, np.zeros_like(states) if setpoints is None else setpoints])
            derive_after(task, frame)
            states = frame[:, : len(task.states)]
        return states

    def _places(self, names: Sequence[str]) -> list[int]:
        """Among the states."""
        return [self.task.state_names.index(name) for name in names]

    def _find_noise(self, held_out: Steps) -> Noise:
        members = [self.predict(held_out.window, member) for member in range(self.members)]
        states = self._places(self.task.predicted)
        return find_noise(held_out, np.mean(members, axis=0), states, self.track.noise)

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:
        """Reward and failure [n] of steps; a row holds next states, window and setpoints."""
        return self.reward.judge(frame, member)

    def system(
        self, dtype: Any = np.float32, members: Sequence[int] | None = None, history: int | None = None
    ) -> System:
        """What the engine rolls controllers out on: all members, or some.

        `history`: rows of the engine's window, at least as many as the task's.
        """
        chosen = range(self.members) if members is None else members
        networks = [network for member in chosen for network in self.dynamics[member]]
        dynamics = lower_dynamics(
            lower_networks(networks, dtype),
            self.task,
            history=history or self.task.history,
            bounds=self.bounds,
            absorbing=self.track.absorbing,
            on_failure=self.failure.values,
        )
        reward = self.reward.lower(chosen, history or self.task.history, dtype)
        return System(dynamics, reward, len(chosen))

    def split(self, batch: Batch) -> tuple[Batch, Batch]:
        """What it was trained on, and what was held out, of the batch that it was learned from."""
        if batch.fingerprint() != self.batch:
            raise ClearloopError(
                f"surrogate of {self.task.name}: it was learned from another batch than this one,"
                " of which nothing is known to be held out"
            )
        return split(batch, self.track, self.split_seed)

    def save(self, folder: str | Path) -> None:
        """`surrogate.json` and `surrogate.safetensors`; each appears whole or not at all."""
        learned = self.reward if isinstance(self.reward, LearnedReward) else None
        header = SurrogateHeader(
            task=self.task.name,
            states=self.task.state_names,
            actions=self.task.action_names,
            history=self.task.history,
            track=self.track,
            altered=self.failure.to_dict(self.task.state_names),
            levels=learned and learned.levels.tolist(),
            failing=learned and learned.failing.tolist(),
            batch=self.batch,
            split_seed=self.split_seed,
        )
        arrays = pack_networks(self.dynamics, "dynamics") | {"region": self.region}
        if len(self.noise.residuals):
            arrays |= {"noise": self.noise.residuals, "noise_last": self.noise.last.astype(np.float64)}
        if learned:
            arrays |= pack_networks(tuple((network,) for network in learned.networks), "reward")
        write_files(folder, header, arrays)

    @classmethod
    def load(cls, folder: str | Path, task: Task) -> Self:
        """What `save` wrote; an error if it is damaged, or of another task."""
        header, arrays = read_files(folder)
        try:
            return cls._of_files(header, arrays, task)
        except ClearloopError as error:
            raise ClearloopError(f"{folder}: {error}") from error

    @classmethod
    def _of_files(cls, header: SurrogateHeader, arrays: dict[str, Floats], task: Task) -> Self:
        header.check(task)
        activation = header.track.training.activation
        reward: KnownReward | LearnedReward = KnownReward(task)
        if header.levels is not None:
            networks = tuple(
                network for member in unpack_networks(arrays, "reward", activation) for network in member
            )
            failing = np.array(header.failing or (), np.bool_)
            reward = LearnedReward(task, networks, np.array(header.levels), failing)
        return cls(
            task=task,
            track=header.track,
            dynamics=unpack_networks(arrays, "dynamics", activation),
            reward=reward,
            failure=FailureEffect.from_dict(header.altered, task.state_names),
            region=arrays.get("region", np.zeros(0)),
            batch=header.batch,
            split_seed=header.split_seed,
            noise=Noise(arrays["noise"], arrays["noise_last"] != 0) if "noise" in arrays else Noise.none(),
        )

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.dynamics[0][0].sizes))
        members, networks = counted(self.members, "member"), counted(len(self.dynamics[0]), "network")
        failure = ", absorbing failure" if self.track.absorbing and self.reward.tells_failure else ""
        return f"Surrogate of {self.task.name}: {members} of {networks} {sizes}, {self.reward}{failure}"
