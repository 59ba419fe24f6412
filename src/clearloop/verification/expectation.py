"""What the original controller does on test vectors, and where an export cannot be held to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller
from clearloop.controllers.reading import read_formula
from clearloop.export.precision import Precision
from clearloop.export.routine import Routine
from clearloop.expression import variables
from clearloop.verification.approximation import Arithmetic
from clearloop.verification.shadow import Inputs, Shadow
from clearloop.verification.vectors import Episode

TOLERANCES = {"double": 1e-12, "single": 1e-5}
"""Of an action, relative to its range."""


@dataclass(frozen=True)
class Expectation:
    episodes: Sequence[Episode]
    actions: NDArray[np.float64]
    """[N, A], step after step through all episodes, actions in the order of the routine's outputs"""
    ranges: NDArray[np.float64]
    """[N, A]: from limit to limit; without limits the action's own size, at least 1"""
    compared: NDArray[np.bool_]
    """[N]: not where the last places of a library's function, or of single precision, decide"""
    tolerance: float

    def difference(self, found: NDArray[np.float64]) -> float:
        """The largest one, relative to the action's range; `found`: [N, A]."""
        off = np.abs(found - self.actions) / self.ranges
        off = np.where(np.isfinite(found), off, np.inf)
        return float(off[self.compared].max(initial=0.0))


def expect(
    controller: Controller, routine: Routine, episodes: Sequence[Episode], precision: Precision
) -> Expectation:
    """Runs the original; the shadow beside it says how far an export may be off."""
    # The meaning of a formula is its evaluation in printed order; other kinds are sums in any order.
    exact = precision.name == "double" and controller.kind == "equation"
    actions, bounds = [], []
    for episode in episodes:
        memory, shadow = controller.reset(), Shadow(routine, Arithmetic(precision, exact))
        rest = _everything(controller)
        for inputs in episode:
            action = controller.act(
                {**rest, **_states(inputs)}, memory, {**_aims(controller), **_setpoints(inputs)}
            )
            found = shadow.step(inputs)
            actions.append([action[output.action.name] for output in routine.outputs])
            bounds.append([found[output.action].bound for output in routine.outputs])
    values = np.array(actions, dtype=float).reshape(len(actions), len(routine.outputs))
    ranges = np.maximum(np.abs(values), 1.0)
    for column, output in enumerate(routine.outputs):
        if output.limits:
            ranges[:, column] = output.limits[1] - output.limits[0]
    tolerance = TOLERANCES[precision.name]
    compared = (np.array(bounds).reshape(values.shape) <= tolerance * ranges).all(1)
    return Expectation(episodes, values, ranges, compared, tolerance)


def _states(inputs: Inputs) -> dict[str, float]:
    return {variable.name: value for variable, value in inputs.items() if variable.part == "value"}


def _setpoints(inputs: Inputs) -> dict[str, float]:
    return {variable.name: value for variable, value in inputs.items() if variable.part == "setpoint"}


def _aims(controller: Controller) -> dict[str, float]:
    return {name: controller.setpoint.get(name, 0.0) for name in controller.follows}


def _everything(controller: Controller) -> dict[str, float]:
    """Values for what the controller looks at though nothing depends on it: a state with a gain of 0."""
    read = {variable.name for _, variable in controller.variables()}
    for text in controller.derived.values():
        read |= {variable.name for variable in variables(read_formula(text))}
    return dict.fromkeys(read - {*controller.actions, *controller.derived}, 0.0)
