"""The exact linearisation of a simulated loop: static gain, stability and margins of the plant itself.

Nothing here comes from a log or a model, and the margins are python-control's, so that what the package says
of a loop can be compared with it. The state is the whole window of the engine: what is past counts, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Controller, encode
from clearloop.evaluation.rollouts import window as window_length
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.plant import fixed_actions, lower_plant
from clearloop.task import Task

HORIZONS = (8, 40)  # that a loop is run for, to come to rest; most need only the first
RESTS = 1e-6  # most change in a step at rest, as a share of the state's spread
SMALL = 1e-4  # length of the differences, as a share of the spread
LARGEST = 500  # entries of a window that is still linearised
STABLE = 1 - 1e-7  # largest eigenvalue of a loop that comes to rest
POINTS = 2000  # frequencies


@dataclass(frozen=True)
class Margins:
    """How far a stable loop is from instability, in the worst of its actions; infinite: at any distance."""

    gain: float
    """the factor by which its gain may rise"""
    phase: float
    """in degrees"""
    delay: float
    """in seconds"""


@dataclass(frozen=True, eq=False)
class ExactLoop:
    """A plant and a controller, linear about the point at which they rest."""

    task: Task
    plant: Floats
    """[n, n] what a window becomes after a step without a change of the action"""
    inputs: Floats
    """[n, A] what a change of the action adds"""
    law: Floats
    """[A, n]"""
    rest: Floats
    """[S + A] states and actions at rest"""

    @property
    def radius(self) -> float:
        """The largest eigenvalue of the closed loop."""
        return float(np.abs(np.linalg.eigvals(self.plant + self.inputs @ self.law)).max())

    @property
    def stable(self) -> bool:
        """Whether small deviations die out."""
        return self.radius < STABLE

    def static_gain(self) -> Floats | None:
        """Return the change of the measured states [M] at rest for each action [M, A]; None: it has none."""
        task = self.task
        width = len(task.states) + len(task.actions)
        columns = np.arange(len(self.plant)) % width
        computed = [task.state_names.index(name) for name in task.derived]
        kept = ~np.isin(columns, computed)
        plant, inputs = self.plant[np.ix_(kept, kept)], self.inputs[kept]
        if np.abs(np.linalg.eigvals(plant)).max() >= STABLE:
            return None
        gains = np.linalg.solve(np.eye(len(plant)) - plant, inputs)
        places = np.flatnonzero(kept)
        measured = [task.state_names.index(name) for name in task.setpoints]
        return np.asarray(gains[[int(np.flatnonzero(places == one)[0]) for one in measured]])

    def margins(self) -> Margins | None:
        """Return the margins, each action's loop cut with the others closed; None if it is not stable."""
        if not self.stable:
            return None
        each = [self._cut(a) for a in range(len(self.law))]
        return Margins(*(min(values) for values in zip(*each, strict=True)))

    def _cut(self, action: int) -> tuple[float, float, float]:
        from control import FrequencyResponseData, stability_margins

        frequencies = np.geomspace(1e-4, 1.0, POINTS) * np.pi / self.task.dt
        response = self._response(action, np.exp(1j * frequencies * self.task.dt))
        factors, phases, _, _, crossings, _ = stability_margins(
            FrequencyResponseData(response, frequencies, smooth=False), returnall=True
        )
        if response[-1].real < 0:  # real at the Nyquist frequency
            factors = np.append(factors, -1 / response[-1].real)
        delays = np.radians(np.remainder(phases, 360.0)) / crossings if len(phases) else np.zeros(0)
        return (
            float(min(factors[factors > 1], default=np.inf)),
            float(min(np.abs(phases), default=np.inf)),
            float(min(delays, default=np.inf)),
        )

    def _response(self, action: int, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return the open-loop response [n] of an action, with its loop cut between controller and plant.

        A law that reads its own past actions reads those that it chose, whatever becomes of them.
        """
        s, a = len(self.task.states), len(self.law)
        late = z[:, None] ** -np.arange(len(self.plant) // (s + a))  # [n, H]
        moves = self.plant[:s].reshape(s, -1, s + a).copy()
        moves[:, 0, s:] = self.inputs[:s]
        plant, own = (np.einsum("nh,ihw->niw", late, one) for one in (moves, self.law.reshape(a, -1, s + a)))
        states = np.linalg.solve(z[:, None, None] * np.eye(s) - plant[..., :s], plant[..., s:])
        back = np.linalg.solve(np.eye(a) - own[..., s:], own[..., :s] @ states)  # [n, A, A]
        others = np.arange(a) != action
        closed = np.eye(a - 1) - back[:, others][:, :, others]
        through = back[:, action][:, None, others] @ np.linalg.solve(closed, back[:, others][:, :, [action]])
        return np.asarray(-back[:, action, action] - through[:, 0, 0])


def linearise_exactly(
    controller: Controller, task: Task, aims: Floats, start: Floats, spread: Floats
) -> ExactLoop | None:
    """Linearise a controller and the plant of a task where they come to rest.

    Args:
        controller: The controller, which reads states of the task.
        task: A task with a plant and without hidden states (`Task.unveiled`).
        aims: [S] the setpoints; 0 for states without one.
        start: [S] where to start from. External states stay there.
        spread: [S] the standard deviation of each state in the log.

    Returns:
        The loop, or None if it does not come to rest within the limits, or remembers too much.
    """
    bench = _Bench(controller.for_task(task), task, aims, start)
    n_states, n_actions = len(task.states), len(task.actions)
    if bench.history * (n_states + n_actions) > LARGEST:
        return None
    sizes = np.append(np.where(spread > 0, spread, 1.0), np.ptp(task.action_limits, axis=1) / 2)
    point = bench.rest(sizes[:n_states])
    if point is None:
        return None
    window = np.tile(point, bench.history)
    window[n_states : n_states + n_actions] = 0.0  # the present action is being chosen
    held, lengths = point[n_states:], SMALL * np.tile(sizes, bench.history)
    law = _slopes(bench.act, window, lengths)
    law[:, n_states : n_states + n_actions] = 0.0
    states = _slopes(lambda some: bench.move(some, np.tile(held, (len(some), 1))), window, lengths)
    moves = _slopes(
        lambda some: bench.move(np.tile(window, (len(some), 1)), some), held, SMALL * sizes[n_states:]
    )
    return _assembled(task, states, moves, law, point, bench.history)


class _Bench:
    """A controller and a plant that can be run from any window [N, H (S + A)], with nothing else moving."""

    def __init__(self, controller: Controller, task: Task, aims: Floats, start: Floats) -> None:
        self.task, self.aims, self.start = task, aims, start
        self.history = max(2, window_length(task, [controller]))
        self._system = lower_plant(task, np.float64, self.history)
        self._law = encode([controller], task, history=self.history)

    def rest(self, sizes: Floats) -> Floats | None:
        """Return states and actions [S + A] at which the closed loop rests, or None."""
        low, high = self.task.action_limits.T
        for horizons in HORIZONS:
            states, actions = self._run(self._law, self.start[None], horizons * self.task.horizon)
            tail, last = states[0, -self.history - 5 :], actions[0, -1]
            if np.isfinite(tail).all() and (np.ptp(tail, axis=0) <= RESTS * sizes).all():
                within = (last > low) & (last < high)  # at its limit, a law has no slope
                return np.append(tail[-1], last) if within.all() else None
        return None

    def act(self, windows: Floats) -> Floats:
        """Return the actions [N, A] of the controller."""
        return self._run(self._law, windows, 1)[1][:, 0]

    def move(self, windows: Floats, actions: Floats) -> Floats:
        """Return the states [N, S] after a step with given actions [N, A]."""
        return self._run(fixed_actions(actions[:, None], self.task), windows, 1)[0][:, 1]

    def _run(self, law: Any, windows: Floats, steps: int) -> tuple[Floats, Floats]:
        external = [self.task.state_names.index(name) for name in self.task.scope.external]
        outside = np.tile(self.start[external], (1, steps + 1, 1)) if external else np.zeros((0, 0, 0))
        aims = np.tile(self.aims, (1, steps + 1, 1))
        job = Job(windows, aims, self.task.discount, self.history, outside, steps=steps)
        found = roll_out(law, self._system, job, trajectories=True)
        return np.asarray(found.states)[0, 0], np.asarray(found.actions)[0, 0]


def _slopes(function: Callable[[Floats], Floats], point: Floats, lengths: Floats) -> Floats:
    """Return the derivatives [outputs, n] of a function of rows [N, n], by central differences."""
    pushes = np.diag(lengths)
    up, down = np.split(function(np.concatenate([point + pushes, point - pushes])), 2)
    return np.asarray(((up - down) / (2 * lengths[:, None])).T)


def _assembled(
    task: Task, states: Floats, moves: Floats, law: Floats, point: Floats, history: int
) -> ExactLoop:
    """Put the loop together; windows move down by a row in each step."""
    s, width = len(task.states), len(task.states) + len(task.actions)
    chosen = np.arange(s, width)
    plant = np.eye(history * width, k=-width)
    plant[:s] = states
    plant[:, chosen] = 0.0  # the present action is an input
    inputs = np.zeros((history * width, len(chosen)))
    inputs[:s] = moves
    inputs[width + chosen] = np.eye(len(chosen))
    return ExactLoop(task, plant, inputs, law, point)
