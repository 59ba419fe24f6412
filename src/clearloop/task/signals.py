"""How what comes from outside runs in simulations: setpoints, external states, disturbances."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import did_you_mean, quoted
from clearloop.task.faults import Fault
from clearloop.task.scope import Scope
from clearloop.task.tables import Signal


def signal_faults(signals: Mapping[str, Signal], scope: Scope, has_plant: bool) -> Iterator[Fault]:
    """Of names that nothing reads: without a plant, there are no disturbances."""
    columns = [aim for aim in scope.setpoints.values() if isinstance(aim, str)]
    known = (*columns, *scope.external)
    for name in signals:
        if name not in known and (name in scope.names or not has_plant):
            hint = did_you_mean(name, known) or "; expected the column of a setpoint, or an external state"
            yield Fault(("signals",), f"nothing reads {quoted(name)}{hint}")


def draw_signal(signal: Signal, count: int, length: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """[count, length]"""
    if signal.noise is not None:
        return rng.normal(0.0, signal.noise, (count, length))
    low, high = signal.steps or (0.0, 0.0)
    least, most = signal.every
    pieces = 2 + length // least
    when, what = rng.spawn(2)  # so that the first ones are the same for any count
    ends = np.cumsum(when.integers(least, most, (count, pieces), endpoint=True), axis=1)
    levels = what.uniform(low, high, (count, pieces))
    changes = np.zeros((count, length), np.int64)
    rows, columns = np.nonzero(ends < length)
    changes[rows, ends[rows, columns]] = 1
    return np.take_along_axis(levels, changes.cumsum(axis=1), axis=1)
