"""A method that needs no thought, and runs that are done in a moment."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import pytest

from clearloop.cli import learn
from clearloop.controllers import Linear, encode
from clearloop.data import Batch
from clearloop.methods import Candidate, Method, Problem, Search, State
from clearloop.networks import Training
from clearloop.registry import METHODS
from clearloop.runs import RunDirectory
from clearloop.surrogate import Quality, Surrogate, Track, assess
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.steps import FailureEffect
from clearloop.task import Task
from tests.surrogate.models import linear_network


@dataclass(frozen=True, kw_only=True)
class Rounds:
    guesses: int = 8
    """in a round"""
    starts: int = 16


@dataclass(frozen=True, kw_only=True)
class Guess(Method):
    """Random gains for some of the states."""

    name: ClassVar[str] = "guess"
    title: ClassVar[str] = "Guess"

    sizes: tuple[int, ...] = (1, 2)
    """how many states a controller may look at"""
    spread: float = 10.0
    shape: Literal["normal", "uniform"] = "normal"
    most: int | None = None
    """rounds, if not as many as the budget allows"""
    weights: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """of no use"""
    rounds: Rounds = field(default_factory=Rounds)

    def __post_init__(self) -> None:
        if self.spread <= 0:
            raise ValueError("spread must be greater than 0")

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Search:
        return Guessing(problem, self, rng)


class Guessing(Search):
    def __init__(self, problem: Problem, settings: Guess, rng: np.random.Generator) -> None:
        self.problem, self.settings, self.rng = problem, settings, rng
        self.found: dict[int, tuple[float, list[list[float]]]] = {}
        self.round = 0

    def advance(self) -> None:
        settings, task = self.settings, self.problem.task
        size = settings.sizes[self.round % len(settings.sizes)]
        gains = self.rng.normal(0, settings.spread, (settings.rounds.guesses, len(task.actions), size))
        controllers = [self._controller(each.tolist()) for each in gains]
        policies = encode(controllers, task, history=self.problem.history, dtype=np.float32)
        costs = self.problem.penalties(policies, starts=settings.rounds.starts)
        for each, cost in zip(gains, costs, strict=True):
            self.found[size] = min(self.found.get(size, (np.inf, [])), (float(cost), each.tolist()))
        self.round += 1

    def _controller(self, gains: list[list[float]]) -> Linear:
        task = self.problem.task
        rows = {
            name: dict(zip(task.state_names, row, strict=False))
            for name, row in zip(task.action_names, gains, strict=True)
        }
        return Linear.model_validate({"gains": rows})

    @property
    def done(self) -> bool:
        return self.round == self.settings.most

    @property
    def best(self) -> float:
        return min((cost for cost, _ in self.found.values()), default=np.inf)

    def candidates(self) -> list[Candidate]:
        return [Candidate(self._controller(gains), cost) for _, (cost, gains) in sorted(self.found.items())]

    def state(self) -> State:
        return {
            "round": self.round,
            "found": [[size, cost, np.array(gains)] for size, (cost, gains) in self.found.items()],
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: State) -> None:
        self.round = state["round"]
        self.found = {size: (cost, gains.tolist()) for size, cost, gains in state["found"]}
        self.rng.bit_generator.state = state["rng"]


def linear_model(task: Task, batch: Batch, track: Track, seed: int) -> Surrogate:
    """A model that is learned in a moment: linear, from least squares, each member from other rows."""
    steps = batch.transitions(task.history)
    inputs = np.column_stack([steps.window, np.ones(len(steps.window))])
    changes = steps.next - steps.window[:, : len(task.states)]
    rng = np.random.default_rng([seed, 1])
    training = Training(hidden=(2 * steps.window.shape[1],))
    track = replace(track, search=2, judge=min(track.judge, 1), training=training)
    members = []
    for _ in range(track.members):
        rows = rng.integers(len(inputs), size=len(inputs))
        gains = np.linalg.lstsq(inputs[rows], changes[rows])[0].T
        members.append(tuple(linear_network(row[:-1], row[-1]) for row in gains))
    return Surrogate(
        task=task,
        track=track,
        dynamics=tuple(members),
        reward=KnownReward(task),
        failure=FailureEffect.of_all_states(len(task.states), altered=False),
        region=np.stack([steps.window.min(axis=0), steps.window.max(axis=0)], axis=1),
        batch=batch.fingerprint(),
        split_seed=0,
    )


def assess_only(surrogate: Surrogate, batch: Batch, run: RunDirectory) -> Quality:
    """With an empty file for the picture."""
    quality = assess(surrogate, surrogate.split(batch)[1])
    (run.path / "model.png").touch()
    run.write_json("quality.json", quality.to_dict())
    return quality


def make_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """`clearloop learn` knows the method `guess`, and has its model in a moment, and an empty report."""
    monkeypatch.setitem(METHODS, "guess", Guess)
    monkeypatch.setattr(learn, "learn_model", linear_model)
    monkeypatch.setattr(learn, "assess_model", assess_only)
    monkeypatch.setattr(learn, "make_report", lambda run: (run.path / "report.html").touch())


PUSHER = """
name = "pusher"
dt = 0.1
discount = 0.9
horizon = 15
[states]
place = { unit = "m" }
speed = { unit = "m/s" }
[actions]
push = { unit = "N", limits = [-2, 2] }
[reward]
cases = [
  { when = "abs(place) > 3", value = -1.0, failure = true },
  { when = "abs(place) < 0.2", value = 0.0 },
]
otherwise = -0.1
[starts]
place = [-2, 2]
speed = [-1, 1]
[exploration]
size = 600
starts = { place = [-3, 3], speed = [-1, 1] }
[plant]
derivative = { place = "speed", speed = "3*push - 0.2*speed" }
"""
