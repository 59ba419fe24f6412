"""Which states a classical controller looks after: what sec. 3.2 of the paper calls process variables."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from clearloop.controllers.reading import check_names
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.expression import variables
from clearloop.methods.linear_model import LinearModel
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

FOLLOWS = 0.9  # share of the variance of a state's changes that the state which is its rate explains


def find_process_variables(task: Task, batch: Batch) -> tuple[str, ...]:
    """The states that the reward reads or that have a setpoint; all, if nothing is known of either. Not those
    that come from outside.

    A state that is only the rate of change of another of them, as the batch shows, is not one: who looks
    after a position looks after its speed.
    """
    named = _goals(task) or set(task.state_names) - set(task.scope.external)
    steps = Steps.of(task, batch)
    steps = steps[~steps.failing]
    index = {name: i for i, name in enumerate(task.state_names) if name in named}
    rates = {b for a, b in product(index, index) if a != b and _is_rate(steps, index[a], index[b])}
    return tuple(name for name in index if name not in rates) or tuple(index)


def _goals(task: Task) -> set[str]:
    formulas = [f for f in (task.reward_expression, task.failure_condition) if f is not None]
    read = {variable.name for formula in formulas for variable in variables(formula)}
    return (read | set(task.setpoints)) & set(task.state_names) - set(task.scope.external)


def _is_rate(steps: Steps, state: int, other: int) -> bool:
    """Whether the state's changes go with the mean of the other one, before and after the step."""
    change = steps.change[:, state]
    mean = (steps.window[:, other] + steps.next[:, other]) / 2
    if len(steps) < 3 or not np.ptp(change) or not np.ptp(mean):
        return False
    return bool(np.corrcoef(change, mean)[0, 1] > FOLLOWS**0.5)


def pair_loops(
    model: LinearModel, wanted: Sequence[str], given: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Each process variable with the action that moves it most; an idle action with what it moves most."""
    task = model.task
    if given:
        check_names("pid.loops", given, "an action", task.action_names)
        for action in task.action_names:
            if not given.get(action):
                raise ClearloopError(f"pid.loops: missing action '{action}': name the states it looks after")
            check_names(f"pid.loops.{action}", given[action], "a state", task.state_names)
        return [(state, action) for action, states in given.items() for state in dict.fromkeys(states)]
    s = len(task.states)
    effects = np.abs(model.gains.reshape(s, -1, len(model.sizes))[:, :, s:]).sum(axis=1)
    effects = effects * model.sizes[s:] / model.sizes[:s, None]
    rows = [task.state_names.index(name) for name in wanted]
    chosen = {(name, int(np.argmax(effects[row]))) for name, row in zip(wanted, rows, strict=True)}
    for idle in set(range(len(task.actions))) - {a for _, a in chosen}:
        chosen.add((wanted[int(np.argmax(effects[rows, idle]))], idle))
    ordered = sorted(chosen, key=lambda pair: (pair[1], task.state_names.index(pair[0])))
    return [(name, task.action_names[a]) for name, a in ordered]
