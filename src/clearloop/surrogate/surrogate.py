"""The surrogate is the model of a plant that controllers are searched on: networks learned from a batch."""

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
from clearloop.files import check_ends, read_text, whole_file
from clearloop.kernels.engine import System
from clearloop.networks import Ensemble, Progress, pack_networks, unpack_networks
from clearloop.numbers import counted, percent
from clearloop.plants.scenarios import Scenarios
from clearloop.programs import derive_after, unbounded
from clearloop.showing import Shown
from clearloop.surrogate.dynamics import fit_dynamics
from clearloop.surrogate.fitting import (
    KnownReward,
    LearnedReward,
    fit_reward,
    lower_dynamics,
    lower_networks,
)
from clearloop.surrogate.noise import Noise, find_noise
from clearloop.surrogate.steps import BEST, FailureEffect, Lesson, Track, portion, split
from clearloop.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate(Shown):
    """A model of a plant with M members, each of which predicts all states and rewards.

    Attributes:
        task: The task that it was learned for, with S states, A actions and H rows of history.
        track: The settings that it was learned with.
        dynamics: `[M][K]` networks from the window of H (S + A) states and actions to the change of each of
            the K predicted states.
        reward: The task's own reward, or a learned one.
        failure: The effect of failure on states, as seen in the log.
        region: [H (S + A), 2] the smallest and the largest value of each input in the training data.
        batch: The fingerprint of the data.
        split_seed: The seed that tells which part of the data was held out.
        noise: What the networks leave unexplained, if it is not negligible.
        repetition: How well the members repeat the log in closed loop, if that was tried. Members that do not
            repeat it neither search nor judge.
    """

    task: Task
    track: Track
    dynamics: Ensemble
    reward: KnownReward | LearnedReward
    failure: FailureEffect
    region: Floats
    batch: str
    split_seed: int
    noise: Noise = field(default_factory=Noise.none)
    repetition: "Repetition | None" = None

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
        """Learn a surrogate from a batch.

        Args:
            task: The task.
            batch: The logged episodes.
            track: The settings of the surrogate.
            rng: The source of all random numbers; equal generators give equal surrogates, bit by bit.
            progress: A function that is told the share of the work that is done and the loss so far, if any.

        Raises:
            ClearloopError: There is no state to predict, or the data is not enough.
        """
        if not task.predicted:
            raise ClearloopError(
                f"task '{task.name}': there is no state to predict, so no model can be learned: every state "
                "is external or has a formula; a state that actions move must be neither"
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
        return replace(fitted, noise=fitted._find_noise(lesson))

    def __post_init__(self) -> None:
        predicted, inputs = len(self.task.predicted), self.task.history * len(self.task.scope.names)
        networks = [network.sizes for member in self.dynamics for network in member]
        fits = (
            [len(member) for member in self.dynamics] == [predicted] * self.track.members
            and {(sizes[0], sizes[-1]) for sizes in networks} == {(inputs, 1)}
            and self.region.shape == (inputs, 2)
            and self.noise.residuals.shape in ((len(self.noise.last), predicted), (0, 0))
            and self.reward.fits(self.members)
            and (self.repetition is None or len(self.repetition.repeats) == self.members)
        )
        if not fits:
            raise ClearloopError(
                f"surrogate of {self.task.name}: its networks do not fit the task: learn it again"
            )

    @property
    def members(self) -> int:
        """The number of members."""
        return len(self.dynamics)

    @property
    def bounds(self) -> Floats:
        """[S, 2] the limits of states in rollouts."""
        bounds = unbounded(len(self.task.states))
        if self.track.reach is not None:
            places = self._places(self.task.predicted)
            low, high = self.region[places].T
            far = self.track.reach * (high - low)
            bounds[places] = np.clip(np.stack([low - far, high + far], axis=1), *bounds[0])
        return bounds

    @property
    def search_members(self) -> tuple[int, ...]:
        """The members that controllers are searched with."""
        return self._kept(range(self.track.search)) or tuple(range(self.track.search))

    @property
    def judge_members(self) -> tuple[int, ...]:
        """The members that judge what was found, which the search does not use if there are enough."""
        return self._kept(range(self.track.search, self.members)) or self.search_members

    def _kept(self, members: Sequence[int]) -> tuple[int, ...]:
        found = self.repetition
        return tuple(member for member in members if found is None or found.repeats[member])

    def predict(
        self,
        window: Floats,
        member: int,
        *,
        after: Floats | None = None,
        setpoints: Floats | None = None,
        noise: Floats | float = 0.0,
    ) -> Floats:
        """Predict the next states [n, S], as the engine does, in double precision.

        Args:
            window: [n, H (S + A)] states and actions of each lag, the present first.
            member: The member that predicts.
            after: [n, S] logged states after the step, for external states; without them these stay as they
                are.
            setpoints: [n, S] setpoints after the step, for states that are derived from them.
            noise: [n, K] noise that is added to the changes of the predicted states.
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
        """Return the indices of these states."""
        return [self.task.state_names.index(name) for name in names]

    def _find_noise(self, lesson: Lesson) -> Noise:
        steps = lesson.held_out + lesson.training
        held_out = np.arange(len(steps)) < len(lesson.held_out)
        members = [self.predict(steps.window, member) for member in range(self.members)]
        states = self._places(self.task.predicted)
        return find_noise(steps, held_out, np.mean(members, axis=0), states, self.track.noise)

    def draw_noise(self, scenarios: Scenarios) -> Floats:
        """Return the noise [N, T, K] of scenarios; nothing if there is no noise."""
        without_past = scenarios.starts.shape[1] == len(self.task.states)
        fresh = without_past or self.task.starts_with_episodes
        return self.noise.draw(len(scenarios), scenarios.steps, scenarios.luck, fresh=fresh)

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:
        """Return reward and failure [n] of steps.

        Args:
            frame: [n, columns] next states, window and setpoints of each step.
            member: The member that judges.
        """
        return self.reward.judge(frame, member)

    def system(
        self,
        dtype: Any = np.float32,
        members: Sequence[int] | None = None,
        history: int | None = None,
    ) -> System:
        """Return the system that the engine rolls controllers out on.

        Args:
            dtype: The precision of its numbers.
            members: The members to use; None takes all.
            history: Rows of the engine's window, at least as many as the task's; None takes as many.
        """
        chosen = range(self.members) if members is None else members
        history = history or self.task.history
        networks = [network for member in chosen for network in self.dynamics[member]]
        dynamics = lower_dynamics(
            lower_networks(networks, dtype),
            self.task,
            history=history,
            bounds=self.bounds,
            absorbing=self.track.absorbing,
            on_failure=self.failure.values,
        )
        reward = self.reward.lower(chosen, history, dtype)
        return System(dynamics, reward, len(chosen))

    def split(self, batch: Batch) -> tuple[Batch, Batch]:
        """Split the batch that it was learned from into what it was trained on and what was held out."""
        if batch.fingerprint() != self.batch:
            raise ClearloopError(
                f"surrogate of {self.task.name}: it was learned from another batch, so no part of this one is"
                " known to be held out: learn it again, or give its own batch"
            )
        return split(batch, self.track, self.split_seed)

    def save(self, folder: str | Path) -> None:
        """Write `surrogate.json` and `surrogate.safetensors`; each appears whole or not at all."""
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
            repetition=self.repetition,
        )
        arrays = pack_networks(self.dynamics, "dynamics") | {"region": self.region}
        if len(self.noise.residuals):
            arrays |= {"noise": self.noise.residuals, "noise_last": self.noise.last.astype(np.float64)}
        if learned:
            arrays |= pack_networks(tuple((network,) for network in learned.networks), "reward")
        write_files(folder, header, arrays)

    @classmethod
    def load(cls, folder: str | Path, task: Task) -> Self:
        """Return what `save` wrote.

        Args:
            folder: The folder with both files.
            task: The task that it was learned for.

        Raises:
            ClearloopError: A file is damaged, or the surrogate belongs to another task.
        """
        header, arrays = read_files(folder)
        try:
            return cls._of_files(header, arrays, task)
        except ClearloopError as error:
            raise ClearloopError(f"{folder}: {error}") from error

    @classmethod
    def _of_files(cls, header: "SurrogateHeader", arrays: dict[str, Floats], task: Task) -> Self:
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
            repetition=header.repetition,
        )

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.dynamics[0][0].sizes))
        members, networks = counted(self.members, "member"), counted(len(self.dynamics[0]), "network")
        failure = ", absorbing failure" if self.track.absorbing and self.reward.tells_failure else ""
        return f"Surrogate of {self.task.name}: {members} of {networks} {sizes}, {self.reward}{failure}"


# On disk, a surrogate is a JSON file with what a person may want to know, and a safetensors file with
# numbers.

TEXT, _NUMBERS = "surrogate.json", "surrogate.safetensors"
LARGEST_TEXT = 1024 * 1024  # bytes

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Repetition(_Table):
    """How well M members repeat the log in closed loop (`evaluation/replays.py`)."""

    law: str
    """the law that answered where a model left the logged course; empty: actions were only repeated"""
    stretches: int
    """number of stretches of the log that were replayed"""
    steps: int
    """steps of a stretch"""
    bias: tuple[_Finite, ...]
    """[M] extra cost of each member's replays, as a share of what the log cost"""
    bias_se: tuple[_Finite, ...]
    """[M] standard error of the bias over stretches"""
    repeats: tuple[bool, ...]
    """[M] whether the member repeats the log; one that runs off does not"""

    @property
    def off(self) -> float:
        """The mean bias of the members that repeat the log; of all members if none does."""
        return self._mean(self.bias)

    @property
    def off_se(self) -> float:
        """The mean standard error of the same biases."""
        return self._mean(self.bias_se)

    def _mean(self, values: tuple[float, ...]) -> float:
        kept = [value for value, repeats in zip(values, self.repeats, strict=True) if repeats]
        return float(np.mean(kept or values))

    @property
    def words(self) -> str:
        """One sentence for people."""
        able, members = sum(self.repeats), len(self.repeats)
        who = "the models repeat" if able == members else f"{able} of {members} models repeat"
        how = "in closed loop" if self.law else "with its own actions"
        if not able:
            return f"none of the {members} models repeats the log {how}"
        stretches = f"{self.stretches} stretches of {self.steps} steps"
        size = percent(abs(self.off), 0)
        what = f"to {size} of its cost" if size != "0 %" else "and its cost"
        return f"{who} the log {how} {what} ({stretches})"


class SurrogateHeader(_Table):
    """The content of `surrogate.json`."""

    clearloop: Literal[1] = 1
    task: str
    states: tuple[str, ...]
    actions: tuple[str, ...]
    history: int
    track: Track
    altered: dict[str, _Finite | None]
    """states that failure alters, and the values that it sets them to; null if the values differ"""
    levels: tuple[_Finite, ...] | None
    """classes of a learned reward, empty if it is a value; null if the task's own reward is used"""
    failing: tuple[bool, ...] | None
    """whether a step of each class fails"""
    batch: str
    """fingerprint of the data"""
    split_seed: int
    """seed that tells which part of the data was held out"""
    repetition: Repetition | None = None
    """how well the members repeat the log"""
    numbers: str = ""
    """SHA-256 of the other file"""

    def check(self, task: Task) -> None:
        """Raise an error if the surrogate was learned for a task with other states, actions or history."""
        ours = (self.states, self.actions, self.history)
        if ours != (task.state_names, task.action_names, task.history):
            raise ClearloopError(
                f"the model was learned for the task {quoted(self.task)}, whose states, actions or history"
                f" differ from those of {quoted(task.name)}: learn it again"
            )
        if self.levels is None and task.reward_expression is None:
            raise ClearloopError(
                f"the model needs a formula for the reward, and {quoted(task.name)} has none: learn it again"
            )


def write_files(folder: str | Path, header: SurrogateHeader, arrays: Mapping[str, Floats]) -> None:
    """Write both files, the JSON last, so that it is there only if the numbers are."""
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
    """Read both files, and check that they belong together."""
    header = _read_header(Path(folder) / TEXT)
    return header, _read_numbers(Path(folder) / _NUMBERS, header.numbers)


def _read_header(path: Path) -> SurrogateHeader:
    try:
        return SurrogateHeader.model_validate_json(read_text(path, LARGEST_TEXT))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise ClearloopError(f"{path}: the file is damaged, or not of a surrogate: {what}") from error


def _read_numbers(path: Path, digest: str) -> dict[str, Floats]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        check_ends(path)
        content = path.read_bytes()
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise ClearloopError(
            f"{path}: the file is damaged, or does not belong to {TEXT}: learn and save the model again"
        )
    try:
        arrays: dict[str, Floats] = load(content)
    except SafetensorError as error:
        raise ClearloopError(f"{path}: the file is damaged: {error}") from error
    return arrays
