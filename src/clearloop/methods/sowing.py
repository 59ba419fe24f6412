"""The linear laws of a batch, from which searches begin: LQR, and the law that the log was made with.

A law of many variables is too long to read, so every law is written in a few variables: those that reproduce
its actions best on the rows of the batch, chosen one after the other, with gains by least squares.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.controllers import Controller, Equation, Linear
from clearloop.controllers.controller import read_variable
from clearloop.data.log import last_rows
from clearloop.errors import ClearloopError
from clearloop.expression import Number, Variable
from clearloop.expression.summands import Term, split_terms
from clearloop.methods.lqr import LQR, design
from clearloop.methods.method import Problem
from clearloop.plants.scenarios import Scenarios

MOST_TERMS = 5  # of an action's law
_ROWS = 2_000  # of the batch, evenly spaced, on which laws are compared
_EXPLAINED = 0.1  # share of the logged action that a law must explain to be called one
_NEGLIGIBLE = 1e-3  # share of an action that one more variable must explain


class LinearLaw(NamedTuple):
    """A law that is linear in a few variables, for one action."""

    terms: tuple[tuple[int, float], ...]
    """indices of variables and their gains; those that explain most come first"""
    constant: float
    centre: float = 0.0
    """the action where every variable has its mean of the batch"""

    def scaled(self, factor: float) -> "LinearLaw":
        """Return the law with all gains times a factor, and the same action at the means."""
        terms = tuple((n, factor * gain) for n, gain in self.terms)
        return LinearLaw(terms, self.centre + factor * (self.constant - self.centre), self.centre)


def sow_laws(problem: Problem, variables: Sequence[Variable]) -> list[tuple[LinearLaw, ...]]:
    """Return the linear laws of the problem's batch, each with a law for every action.

    They are LQR, if the batch determines one, and what the logged actions follow, if they follow anything.

    Args:
        problem: The problem.
        variables: The variables that laws may read.
    """
    rows = np.flatnonzero(~last_rows(problem.batch.episodes) & np.isfinite(problem.batch.actions).all(axis=1))
    if not len(rows):
        return []
    rows = rows[np.linspace(0, len(rows) - 1, min(_ROWS, len(rows))).astype(int)]
    features = _features(problem, rows)
    readable = features[:, [problem.features.slot(variable) for variable in variables]]
    laws = []
    regulator = _regulator(problem)
    if regulator is not None:
        gains, constants = regulator
        actions = np.einsum("nf,af->na", features, gains) + constants
        laws.append(tuple(_shortened(readable, column, problem)[0] for column in actions.T))
    states = np.array([variable.name in problem.task.state_names for variable in variables])
    seen = np.where(states, readable, 0.0)  # a held action would be explained by itself
    logged = [_shortened(seen, column, problem) for column in problem.batch.actions[rows].T]
    if max(explained for _, explained in logged) > _EXPLAINED:
        laws.append(tuple(law for law, _ in logged))
    return [law for law in laws if any(one.terms for one in law)]


def _features(problem: Problem, rows: Ints) -> Floats:
    """Return the engine's features [N, features] in rows of the batch."""
    task, n = problem.task, len(rows)
    logged = Scenarios.logged(task, problem.batch, rows, steps=1)
    aims = np.broadcast_to(logged.setpoints[:, 0], (n, len(task.states)))
    windows = logged.starts.reshape(n, -1, len(task.states) + len(task.actions))[:, : problem.history].copy()
    windows[:, :, : len(task.states)] -= aims[:, None]
    return np.hstack([windows.reshape(n, -1), aims])


def _regulator(problem: Problem) -> tuple[Floats, Floats] | None:
    """Return the gains [A, features] and constants [A] of LQR; None if there is no LQR of the batch."""
    try:
        controller = design(problem.task, problem.batch, LQR()).controller()
    except ClearloopError:
        return None
    gains = np.zeros((len(problem.task.actions), problem.features.count))
    constants = np.zeros(len(gains))
    for a, terms in enumerate(_terms_of(controller, problem.task.action_names)):
        for term in terms:
            match term:
                case Term(factor, Variable(lag=lag) as variable):
                    # With dead time LQR looks back further than the search, which reads its oldest value.
                    seen = replace(variable, lag=min(lag, problem.history - 1)) if lag else variable
                    gains[a, problem.features.slot(seen)] += factor
                case Term(factor, Number(value)):
                    constants[a] += factor * value
                case _:
                    return None
    return gains, constants


def _terms_of(controller: Controller, actions: Sequence[str]) -> Iterator[Sequence[object]]:
    """Yield the terms of each action; those of a controller that is no weighted sum are no `Term`."""
    for action in actions:
        match controller:
            case Linear(gains=gains):
                yield [Term(gain, read_variable(name)) for name, gain in gains[action].items()]
            case Equation():
                yield split_terms(controller.formula(action))
            case _:
                yield [controller]


def _shortened(features: Floats, actions: Floats, problem: Problem) -> tuple[LinearLaw, float]:
    """Fit a law of few variables to actions [N], and return it with the share of them that it explains.

    Args:
        features: [N, variables] the variables that a law may read.
        actions: [N] what the law should give.
        problem: The problem, whose symmetry rules out a constant.
    """
    symmetric = problem.task.symmetric
    centre = 0.0 if symmetric else float(actions.mean())
    means = np.zeros(features.shape[1]) if symmetric else features.mean(axis=0)
    sizes = features.std(axis=0)
    inputs, target = (features - means) / np.where(sizes > 0, sizes, 1.0), actions - centre
    chosen, gains, explained = _selected(inputs, target, np.flatnonzero(sizes > 0).tolist())
    terms = tuple((n, float(gain / sizes[n])) for n, gain in zip(chosen, gains.tolist(), strict=True))
    constant = centre - sum(gain * float(means[n]) for n, gain in terms)
    return LinearLaw(terms, constant, centre), explained


def _selected(inputs: Floats, target: Floats, allowed: Sequence[int]) -> tuple[list[int], Floats, float]:
    """Choose columns of the inputs one after the other, each time the one that explains most with the others.

    Returns:
        The columns, their gains, and the share of the target's power that they explain.
    """
    power = float(np.mean(target**2))
    chosen: list[int] = []
    gains, left = np.zeros(0), power
    while len(chosen) < min(MOST_TERMS, len(allowed)) and left > _NEGLIGIBLE * power:
        trials = [[*chosen, n] for n in allowed if n not in chosen]
        fits = [np.linalg.lstsq(inputs[:, some], target, rcond=1e-9)[0] for some in trials]
        errors = [
            float(np.mean((target - inputs[:, some] @ fit) ** 2))
            for some, fit in zip(trials, fits, strict=True)
        ]
        best = int(np.argmin(errors))
        if left - errors[best] < _NEGLIGIBLE * power:
            break
        chosen, gains, left = trials[best], fits[best].astype(np.float64), errors[best]
    return chosen, gains, 1 - left / power if power > 0 else 0.0
