"""Neural fitted Q iteration (NFQ, sec. 3.3 of the paper; Riedmiller 2005) learns a network Q(s, a).

Q is fitted again and again, by Rprop on the whole batch, to the right side of the Bellman equation. An
iterate need not be better than the one before it, so the paper compares the *last* one with the one that is
*selected* on the surrogate.

Starting at Q = 0, the k-th iterate is the best return of k steps. The network is fitted to its *share*, which
is 0 if all k rewards are the worst of the log and 1 if all are the best. The network's output is the logit of
this share, so that the loss is a cross-entropy. It resolves differences among good actions, whose shares are
all close to 1, which squared errors would lose beside the large penalties of failure; and no iterate can
diverge.
"""

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import GreedyQ, encode
from clearloop.controllers.network import MOST_CHOICES
from clearloop.errors import UnsuitableError, check_range
from clearloop.evaluation.q_evaluation import (
    LoggedSteps,
    as_errors,
    experience,
    total_discount,
    with_mirror_image,
)
from clearloop.methods.method import Candidate, Column, Method, Problem, Search, State
from clearloop.networks import Network, Scaling
from clearloop.networks.network import ACTIVATION_FUNCTIONS
from clearloop.surrogate.steps import Steps
from clearloop.task.tables import Action, to_levels

SCORED = 256  # starts that each iterate is rolled out from, on all members of the search
FINALISTS = 5  # best iterates on the members of the search, of which the judging members select one


@dataclass(frozen=True, kw_only=True)
class NFQ(Method):
    """Neural fitted Q iteration (sec. 3.3 of the paper).

    Attributes:
        hidden: Tanh units of each hidden layer.
        levels: Values of each action, from limit to limit, of which the controller takes the best.
        iterations: Number of times that Q is fitted.
        epochs: Epochs of Rprop for each fit.
        decay: The weight of squared network weights in the loss; without it they grow from fit to fit, and Q
            becomes ever steeper.
    """

    hidden: tuple[int, ...] = (20, 20)
    levels: int = 9
    iterations: int = 200
    epochs: int = 30
    decay: float = 1e-5

    name: ClassVar[str] = "nfq"
    title: ClassVar[str] = "NFQ"
    gives: ClassVar[str] = "value network"
    section: ClassVar[str] = "3.3"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("nfq-last", "NFQ last", 4, "15.0 ± 1.0", "15.5 ± 0.9"),
        Column("nfq-selected", "NFQ selected", 5, "2.71 ± 0.04", "5.4 ± 0.2"),
    )
    effort: ClassVar[float] = 3.0
    grows: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self, "hidden", 1, 1_000)
        check_range(self, "levels", 2, MOST_CHOICES)
        check_range(self, "iterations epochs", 1)
        check_range(self, "decay", 0, 1)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> "NFQSearch":
        each = len(problem.starts[:SCORED]) * problem.members * problem.task.horizon
        problem.budget = min(problem.budget, self.iterations * each)  # more cannot be spent
        return NFQSearch(problem, self, rng)


class Iterate(NamedTuple):
    """One fit of Q and the penalty of its greedy controller."""

    q: Network
    """network from standardised states and actions to the logit of Q's share"""
    penalty: float
    """penalty of the greedy controller on the surrogate"""


class NFQSearch(Search):
    """A search that fits Q once in each round and rolls out the greedy controller on the surrogate."""

    def __init__(self, problem: Problem, settings: NFQ, rng: np.random.Generator) -> None:
        from clearloop.networks.rprop import first_network

        self.problem, self.settings = problem, settings
        self.grid = [_grid(action, settings.levels) for action in problem.task.actions.values()]
        if (count := prod(map(len, self.grid))) > MOST_CHOICES:
            raise UnsuitableError(
                f"nfq: levels = {settings.levels}: this gives {count:,} combinations of actions, but at most "
                f"{MOST_CHOICES:,} can be compared: use fewer levels"
            )
        self.steps = _experience(problem)
        self.scaling = Scaling.of(self.steps.pairs)
        paid = np.append(self.steps.reward, [0.0] * int(self.steps.succeeding.any()))  # 0 after a success
        low, high = paid.min(), paid.max()
        self.reward = (self.steps.reward - low) / ((high - low) or 1.0)
        """[n] from 0, the worst, to 1, the best"""
        self.nothing = -low / ((high - low) or 1.0)
        """the share of a reward of 0"""
        sizes = (self.scaling.mean.size, *settings.hidden, 1)
        self.last = Iterate(first_network(rng, sizes, "tanh"), np.inf)
        self.finalists: list[Iterate] = []
        """the best iterates so far, the best first"""
        self.iteration = 0

    def advance(self) -> None:
        problem = self.problem
        q = self._fitted(self._targets())
        policies = encode([self._controller(q)], problem.task, history=problem.history, dtype=np.float32)
        self.latest = float(problem.penalties(policies, starts=SCORED)[0])
        self.last = Iterate(q, self.latest)
        ranked = sorted([*self.finalists, self.last], key=lambda iterate: iterate.penalty)
        self.finalists = ranked[:FINALISTS]
        self.iteration += 1

    def _targets(self) -> Floats:
        """Return the shares [n] of r + γ max Q(s′, a′), each of which is a discounted mean of k rewards.

        If failure lasts, all rewards after a failing step equal its own; after a success there are none.
        """
        discount, k = self.problem.task.discount, self.iteration + 1
        rest = discount * total_discount(discount, k - 1)
        follows = np.where(self.steps.succeeding, self.nothing, self._values_after())
        follows = np.where(self.steps.failing, self.reward, follows)
        shares: Floats = (self.reward + rest * follows) / (1 + rest)
        return shares

    def _values_after(self) -> Floats:
        """Return the shares [n] of max Q(s′, a′) by the last iterate."""
        from clearloop.networks.rprop import highest

        after = self.steps.after
        of_states, of_actions = self.scaling[: after.shape[1]], self.scaling[after.shape[1] :]
        choices = of_actions.standardise(np.array(list(product(*self.grid))))
        return ACTIVATION_FUNCTIONS["sigmoid"](highest(self.last.q, of_states.standardise(after), choices))

    def _fitted(self, targets: Floats) -> Network:
        """Fit Q to the targets, starting with the weights of the last iterate."""
        from clearloop.networks.rprop import rprop

        inputs = self.scaling.standardise(self.steps.pairs)
        q, _ = rprop(
            self.last.q, inputs, targets[:, None], loss="shares", epochs=self.settings.epochs,
            decay=self.settings.decay,
        )  # fmt: skip
        return q

    def _controller(self, q: Network, name: str | None = None) -> GreedyQ:
        task, network = self.problem.task, q.with_scaling(self.scaling, Scaling.none(1))
        kinds = [*["tanh"] * len(self.settings.hidden), "identity"]
        layers = zip(network.weights, network.biases, kinds, strict=True)
        table = {
            "name": name,
            "inputs": [str(variable) for variable in self.problem.readable],
            "layers": [
                {"weights": w.tolist(), "bias": b.tolist(), "activation": kind} for w, b, kind in layers
            ],
            "outputs": {a: levels.tolist() for a, levels in zip(task.action_names, self.grid, strict=True)},
        }
        return GreedyQ.model_validate(table).for_task(task)

    @property
    def done(self) -> bool:
        return self.iteration >= self.settings.iterations

    @property
    def best(self) -> float:
        return self.finalists[0].penalty if self.finalists else np.inf

    def candidates(self) -> list[Candidate]:
        """Return the finalists and the last iterate, of which the judges select one, and *last* itself."""
        if not self.iteration:
            return []
        chosen = [*self.finalists, self.last]
        selected = [Candidate(self._controller(q, "nfq-selected"), penalty) for q, penalty in chosen]
        last = Candidate(self._controller(self.last.q, "nfq-last"), self.last.penalty, compared=True)
        return [*selected, last]

    def state(self) -> State:
        return {
            "iteration": self.iteration,
            "last": _pack(self.last),
            "finalists": [_pack(iterate) for iterate in self.finalists],
        }

    def restore(self, state: State) -> None:
        self.iteration, self.last = state["iteration"], _unpack(state["last"])
        self.finalists = [_unpack(iterate) for iterate in state["finalists"]]


def _grid(action: Action, levels: int) -> Floats:
    """Return values from limit to limit; if the action has steps, only values that it can take."""
    low, high = action.limits
    if action.count:
        levels = min(levels, action.count + 1)
    even = np.linspace(low, high, levels)[:, None]
    return to_levels(even, np.array([action.limits]), np.array([action.count]))[:, 0]


def _experience(problem: Problem) -> LoggedSteps:
    """Return the logged steps; on the published track, as in the paper, no end lasts."""
    task, track = problem.task, problem.surrogate.track
    steps = Steps.of(task, problem.batch)
    if task.symmetric and track.mirrored:
        steps = with_mirror_image(steps)
    known = experience(task, as_errors(task, steps))
    return known._replace(
        failing=known.failing & track.absorbing, succeeding=known.succeeding & track.absorbing
    )


def _pack(iterate: Iterate) -> State:
    q, penalty = iterate
    return {"penalty": penalty, "weights": list(q.weights), "biases": list(q.biases)}


def _unpack(state: State) -> Iterate:
    return Iterate(Network(tuple(state["weights"]), tuple(state["biases"]), "tanh"), state["penalty"])
