"""Behaviour cloning imitates the logged actions: a baseline that every learned controller should beat.

It gives two controllers: the readable law that explains the logged actions (`explanation/`), and a small
network fitted to (state → action) by squared error, for behaviour that no formula captures. Neither of them
uses rewards.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clearloop.controllers import Controller, NetworkController
from clearloop.data.log import split_rows
from clearloop.errors import UnsuitableError, check_range
from clearloop.evaluation import evaluate
from clearloop.explanation import Explanation, explain
from clearloop.explanation.signals import Signals
from clearloop.methods.method import Candidate, Method, Problem, Search, State
from clearloop.networks import Network, Training, train
from clearloop.numbers import careful_percent, significant


@dataclass(frozen=True, kw_only=True)
class Cloning(Method):
    """Behaviour cloning: a law and a network that imitate the logged actions.

    Attributes:
        hidden: Neurons of the network's hidden layer.
        epochs: Passes over the batch when the network is trained.
        held_out: Share of the batch that is not trained on and tells when the network is best.
    """

    name: ClassVar[str] = "cloning"
    title: ClassVar[str] = "Cloning"
    gives: ClassVar[str] = "the logged law"
    needs_model: ClassVar[bool] = True

    hidden: int = 10
    epochs: int = 200
    held_out: float = 0.2

    def __post_init__(self) -> None:
        check_range(self, "hidden", 1, 1_000)
        check_range(self, "epochs", 1)
        check_range(self, "held_out", 0.001, 0.999)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> "CloningSearch":
        return CloningSearch(problem, self, rng)


class CloningSearch(Search):
    """One round, which evaluates both clones on the model."""

    def __init__(self, problem: Problem, settings: Cloning, rng: np.random.Generator) -> None:
        self.problem = problem
        found = explain(problem.task, problem.batch)
        _check_law(found)
        self._clones: tuple[Controller, ...] = (found.controller(), fit_network(problem, settings, rng))
        self._penalties: list[float] = []

    def advance(self) -> None:
        problem = self.problem
        members = problem.surrogate.search_members
        for clone in self._clones:
            judged = evaluate(
                clone, problem.task, surrogate=problem.surrogate, members=members, starts=problem.scenarios
            )
            problem.spent += len(problem.starts) * len(members) * problem.task.horizon
            self._penalties.append(judged.penalty)

    @property
    def done(self) -> bool:
        return bool(self._penalties)

    @property
    def best(self) -> float:
        return min(self._penalties, default=np.inf)

    def candidates(self) -> list[Candidate]:
        return [Candidate(*pair) for pair in zip(self._clones, self._penalties, strict=False)]

    def state(self) -> State:
        return {"penalties": self._penalties}

    def restore(self, state: State) -> None:
        self._penalties = list(state["penalties"])


def _check_law(found: Explanation) -> None:
    if not any(account.chosen == "law" for account in found.accounts):
        raise UnsuitableError(
            f"cloning: there is nothing to clone: {found.verdict} Leave this method out, or give a log of a "
            "plant that a controller runs"
        )


def fit_network(problem: Problem, settings: Cloning, rng: np.random.Generator) -> NetworkController:
    """Fit a network from errors (value − setpoint) to the logged actions.

    The network is the one of the epoch that was best on the held-out episodes.
    """
    task, batch = problem.task, problem.batch
    signals = Signals.of(task, batch)
    parts = [
        (signals.errors[rows], batch.actions[rows][None])
        for rows in (
            part[signals.chosen[part]] for part in split_rows(batch.episodes, settings.held_out, rng)
        )
    ]
    training = Training(hidden=(settings.hidden,), activation="tanh", epochs=settings.epochs)
    trained = train(*parts[0], held_out=parts[1], settings=training, rng=rng)
    network = trained.networks[0][0]
    share = 1 - float(trained.held_out_loss.min())
    return _as_controller(
        network, problem, f"clone of the log; explains {careful_percent(share)} of other rows"
    )


def _as_controller(network: Network, problem: Problem, name: str) -> NetworkController:
    last = len(network.weights) - 1
    layers = [
        {
            "weights": _short(weights),
            "bias": _short(biases),
            "activation": network.activation if number < last else "identity",
        }
        for number, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True))
    ]
    outputs: dict[str, dict[str, float]] = {action: {} for action in problem.task.action_names}
    file = {"name": name, "inputs": problem.task.state_names, "layers": layers, "outputs": outputs}
    return NetworkController.model_validate(file).for_task(problem.task)


def _short(numbers: np.ndarray) -> list[object]:
    """Round to six significant digits, so that the file holds the same numbers."""
    return [_short(row) if row.ndim else significant(row, 6) for row in numbers]
