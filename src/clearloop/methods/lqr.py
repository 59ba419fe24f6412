"""The linear quadratic regulator (LQR, sec. 3.1 of the paper) is designed for a linear model of the batch.

LQR knows neither limits nor rewards: it weighs squared deviations by Q and squared actions by R. Weights that
are not given follow one rule, in the units of the log. Every state and action is measured by the power of ten
nearest to its size. The size of a state is its standard deviation in the batch, or half of the start box if
that is more; the size of an action is half its range. In these units, a process variable weighs 1
(`linear_model.py`: states that the reward reads or that have a setpoint, without their rates of change), any
other state 0.1, and an action 10, because the plant does not get what LQR asks for beyond the limits. For the
cart-pole this is Q = diag(1, 0.1, 1, 0.1), R = 0.1. A computed sum of the error of a process variable weighs
so much that an offset is gone after the plant's time constant; other computed states have no weight. Learning
also tries larger and smaller weights of actions and sums, and takes those that cost least on the model.

The law holds the plant in the steady state that belongs to its setpoints, by a constant and, where setpoints
move, by gains on them. If the plant is not quite the model, an offset remains, unless the task has a sum.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers import Controller, Equation, Linear, encode
from clearloop.controllers.controller import check_names
from clearloop.data import Batch
from clearloop.errors import UnsuitableError, check_range
from clearloop.methods.identification import TINY
from clearloop.methods.linear_model import CERTAIN, LinearModel, find_process_variables, identify
from clearloop.methods.method import Candidate, Column, Method, Problem, Search, State
from clearloop.numbers import significant
from clearloop.task import Task

_DIGITS = 6  # significant digits of a gain
_NEGLIGIBLE = (
    0.01  # share of an action's range: if no constant is larger, the controller has none and is linear
)
_DRAWN = 64  # models, for the error of an action's effect
_WATCHED = 60  # most steps within which an action must move a state
_LARGE = 1e12  # beyond it a response only says that the plant runs away
UNDAMPED = 1 - 1e-6  # modes whose eigenvalue is at least this large do not die out by themselves


@dataclass(frozen=True, kw_only=True)
class LQR(Method):
    """The linear quadratic regulator (sec. 3.1 of the paper).

    Weights are in inverse squared units of the log; those that are not given follow the rule of this module.

    Attributes:
        q: The weight of a state's squared deviation from its setpoint, by the name of the state.
        r: The weight of a squared action, by the name of the action.
        caution: The weight of an action at its limits, relative to a process variable at its usual size, for
            actions that are not in `r`.
    """

    q: dict[str, float] = field(default_factory=dict)
    r: dict[str, float] = field(default_factory=dict)
    caution: float = 10.0

    name: ClassVar[str] = "lqr"
    title: ClassVar[str] = "LQR"
    gives: ClassVar[str] = "linear"
    section: ClassVar[str] = "3.1"
    columns: ClassVar[tuple[Column, ...]] = (Column("lqr", "LQR", 1, "2.23", "3.01"),)
    effort: ClassVar[float] = 0.1
    grows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_range(self, "q", 0, 1e30)
        check_range(self, "r caution", 1e-30, 1e30)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> "LQRSearch":  # noqa: ARG002
        return LQRSearch(problem, self)


@dataclass(frozen=True, eq=False)
class Design:
    """The gains for S states and A actions, with the model and weights behind them.

    The law reads n entries of the state z of `LinearModel`.
    """

    model: LinearModel
    entries: Ints
    """[n] the numbers of the entries of z that the law reads"""
    q: Floats
    """[S] weights of the present states; past states have no weight"""
    r: Floats
    """[A] weights of the actions"""
    gain: Floats
    """[A, n] K of the law a = -K z, by the Riccati equation"""
    eigenvalues: NDArray[np.complex128]
    """[n] eigenvalues of the closed loop U - V K, the slowest first; all are inside the unit circle"""
    constant: Floats
    """[A] constants of the law, which hold the plant in its steady state"""
    forward: Floats
    """[A, S] gains on the setpoints that move, which hold the plant at any of them"""
    integrals: tuple[str, ...]
    """the computed sums that the law feeds back, so that no offset remains"""

    @property
    def names(self) -> tuple[str, ...]:
        """[n] the names of what the law reads."""
        return tuple(self.model.names[k] for k in self.entries)

    def controller(self) -> Controller:
        """Return a linear controller, or an equation if the actions of the steady state are not 0."""
        task = self.model.task
        rows = {
            action: {name: significant(-gain, _DIGITS) for name, gain in zip(self.names, row, strict=True)}
            for action, row in zip(task.action_names, self.gain, strict=True)
        }
        least = _NEGLIGIBLE * np.ptp(task.action_limits, axis=1)
        led = np.abs(self.forward) * self.model.sizes[: len(task.states)] > least[:, None]
        if (np.abs(self.constant) <= least).all() and not led.any():
            return Linear(name=self.title, gains=rows)
        sums = {}
        for action, constant, forward in zip(task.action_names, self.constant, self.forward, strict=True):
            aims = zip(task.state_names, forward, strict=True)
            ahead = {f"{name}.setpoint": float(gain) for name, gain in aims if led.any() and gain}
            parts = {name: gain for name, gain in (ahead | rows[action]).items() if gain}
            sums[action] = f"{significant(constant, _DIGITS)!r}" + "".join(
                f" {gain:+.{_DIGITS}g}*{name}" for name, gain in parts.items()
            )
        return Equation(name=self.title, outputs=sums)

    @property
    def law(self) -> Floats:
        """[A, H, S + A] the gains from the window to the action, the present first; 0 for present actions."""
        model = self.model
        law = np.zeros((len(model.task.actions), model.history, len(model.sizes)))
        for k, gain in zip(self.entries, self.gain.T, strict=True):
            law[:, model.entries[k][0], model.entries[k][1]] = -gain
        return law

    @property
    def title(self) -> str:
        """The controller's name in one line, with as many eigenvalues of the closed loop as fit."""
        what = "LQR with integral action" if self.integrals else "LQR"
        text = f"{what}; closed loop: {', '.join(map(_complex, self.eigenvalues))}"
        return text if len(text) <= 200 else text[:199] + "…"


def design(
    task: Task,
    batch: Batch,
    settings: LQR,
    *,
    model: LinearModel | None = None,
    reset: float = 1.0,
) -> Design:
    """Design a linear quadratic regulator from the batch alone, by the equations of sec. 3.1.

    Args:
        task: The task.
        batch: The log.
        settings: The weights.
        model: The linear model of the log, if it is known already.
        reset: The time in which an offset is integrated away, in time constants of the plant.

    Raises:
        UnsuitableError: The batch does not determine a linear model, an undamped mode cannot be controlled,
            or the weights give no stable closed loop.
    """
    check_names("lqr.q", settings.q, "a state", task.state_names)
    check_names("lqr.r", settings.r, "an action", task.action_names)
    wanted = find_process_variables(task, batch)
    model = model or identify(task, batch)
    integrals = find_integrals(model, wanted)
    entries = _read(model, {*wanted, *integrals, *settings.q})
    _check_controllable(model, entries)
    q, r = _weights(model, wanted, integrals, settings, reset)
    u, v = model.matrices
    u, v = u[np.ix_(entries, entries)], v[entries]
    now = [model.entries[k] for k in entries]
    weights = [q[j] if lag == 0 and j < len(q) else 0.0 for lag, j in now]
    gain, eigenvalues = _solve(u, v, np.diag(weights), np.diag(r))
    constant, forward = _holding(model, np.isin(task.state_names, wanted), entries, gain)
    return Design(model, entries, q, r, gain, eigenvalues, constant, forward, tuple(integrals))


def find_integrals(model: LinearModel, wanted: Sequence[str]) -> dict[str, str]:
    """Return the computed states that sum up the error of a process variable, with that variable."""
    task, static = model.task, model.slopes.sum(axis=1)
    found: dict[str, str] = {}
    for name in task.derived:
        j = task.state_names.index(name)
        of = [w for w in wanted if abs(model.aims[j, task.state_names.index(w)]) > 0]
        summed = static[j, j] >= UNDAMPED and len(of) == 1 and np.count_nonzero(model.aims[j]) == 1
        if summed and of[0] not in found.values():
            found[name] = of[0]
    return found


def _read(model: LinearModel, named: set[str]) -> Ints:
    """Return the entries of z that a law needs: all but computed states that are not named."""
    task = model.task
    needed = set(task.state_names) - set(task.derived) | named
    for name in reversed(task.derived):
        if name in needed:
            row = model.slopes[task.state_names.index(name)].any(axis=0)
            needed |= {
                other for other, reads in zip(task.state_names, row[: len(task.states)], strict=True) if reads
            }
    left_out = {task.state_names.index(name) for name in set(task.state_names) - needed}
    idle = {
        j for j, name in enumerate(task.state_names) if name in task.scope.external and not model.sizes[j]
    }
    return np.array([k for k, (_, j) in enumerate(model.entries) if j not in left_out | idle], np.int64)


def _holding(model: LinearModel, wanted: Flags, entries: Ints, gain: Floats) -> tuple[Floats, Floats]:
    """Return the constants [A] and the gains on setpoints [A, S] that hold the plant in its steady state.

    In a law a name means the distance from the setpoint, for states that have one.
    """
    task = model.task
    aimed = np.isin(task.state_names, list(task.setpoints))

    def held(aims: Floats) -> Floats:
        states, actions = model.rest(wanted, aims, limited=False)
        away = model.held(states - np.where(aimed, aims, 0.0), actions)
        return np.asarray(actions + gain @ away[entries])

    usual = held(model.usual)
    forward = np.zeros((len(task.actions), len(task.states)))
    for name in task.logged_setpoints:
        j = task.state_names.index(name)
        step = (model.sizes[j] or 1.0) * np.eye(len(task.states))[j]
        slope = (held(model.usual + step) - usual) / step[j]
        least = _NEGLIGIBLE * np.ptp(task.action_limits, axis=1)
        forward[:, j] = np.where(np.abs(slope * step[j]) > least, slope, 0.0)
    low, high = task.action_limits.T
    return np.clip(usual, low, high) - forward @ model.usual, forward


def _weights(
    model: LinearModel, wanted: tuple[str, ...], integrals: Mapping[str, str], settings: LQR, reset: float
) -> tuple[Floats, Floats]:
    task = model.task
    count = len(task.states)
    sizes = model.sizes.copy()
    if task.start_box is not None:
        sizes[:count] = np.maximum(sizes[:count], np.ptp(task.start_box, axis=1) / 2)
    units = 10.0 ** np.round(np.log10(np.where(sizes > 0, sizes, 1.0)))
    own = set(task.state_names) - set(task.derived)
    shares = [1.0 if name in wanted else 0.1 if name in own else 0.0 for name in task.state_names]
    usual = dict(zip(task.state_names, np.array(shares) / units[:count] ** 2, strict=True))
    for name, of in integrals.items():
        j, i = task.state_names.index(name), task.state_names.index(of)
        usual[name] = usual[of] / (model.aims[j, i] * reset * _steps_of(model)) ** 2
    q = [settings.q.get(name, weight) for name, weight in usual.items()]
    r = [
        settings.r.get(n, settings.caution / unit**2)
        for n, unit in zip(task.action_names, units[count:], strict=True)
    ]
    return np.array(q), np.array(r)


def _steps_of(model: LinearModel) -> float:
    """Return the slowest time constant of the plant in steps, dead time included, and at most the horizon."""
    task = model.task
    logged = [
        k for k, (_, j) in enumerate(model.entries) if _name(task, j) in (*task.predicted, *task.action_names)
    ]
    values = np.abs(np.linalg.eigvals(model.matrices[0][np.ix_(logged, logged)]))
    slow = [-1 / np.log(value) for value in values if 1e-6 < value < UNDAMPED]
    return float(np.clip(max(slow, default=0.0) + model.delays.max(initial=0), 3.0, task.horizon))


def _name(task: Task, column: int) -> str:
    return task.scope.names[column]


def _check_controllable(model: LinearModel, entries: Ints) -> None:
    """Check that an action moves every mode that does not die out (Popov, Belevitch, Hautus).

    A left eigenvector m of U with the eigenvalue λ meets the columns of V in Σ m_s λ^-h B_h. Here B_h are
    the gains on the actions of h steps ago, and m_s the entries of m for the present states. That sum may
    be less certain than its parts, such as the static gain of a plant that was disturbed all the time. So it
    may have any size, as long as an action clearly moves one of the mode's states within the horizon.
    """
    u = model.matrices[0][np.ix_(entries, entries)]
    s, names = len(model.task.states), model.task.state_names
    now = {model.entries[k][1]: i for i, k in enumerate(entries) if model.entries[k][0] == 0}
    values, modes = np.linalg.eig(u.T)
    lasting = np.abs(values) >= UNDAMPED
    if not lasting.any():
        return
    gains = model.slopes[:, :, s:]
    drawn = list(model.drawn(_DRAWN, np.random.default_rng(0)))
    apart = np.array([one.slopes[:, :, s:] for one in drawn]) - gains
    moved: Flags | None = None
    for value, mode in zip(values[lasting], modes.T[lasting], strict=True):
        present = np.array([mode[now[j]] if j in now else 0.0 for j in range(s)])
        weights = present[:, None] / value ** np.arange(model.history)
        effect = np.abs(np.einsum("sh,sha->a", weights, gains))
        error = CERTAIN * np.einsum("sh,dsha->da", weights, apart).std(axis=0)
        shares = np.abs(present) * model.sizes[:s]
        if (effect > error + TINY * shares.sum() / model.sizes[s:]).any():
            continue
        moved = _moved(model, drawn) if moved is None else moved
        large = shares > 0.5 * shares.max()
        if not moved[large].any():
            said = " and ".join(np.array(names)[large])
            raise UnsuitableError(
                f"lqr: uncontrollable: no action moves {said}, which does not come to rest by itself: add "
                "the action that moves it, or leave it out of the task"
            )


def _moved(model: LinearModel, drawn: Sequence[LinearModel]) -> Flags:
    """Tell which states [S] an action clearly moves within the horizon."""
    steps = min(model.task.horizon, _WATCHED)
    usual = _responses(model, steps)
    error = CERTAIN * (np.array([_responses(one, steps) for one in drawn]) - usual).std(axis=0)
    size = model.sizes[: usual.shape[1], None] / model.sizes[usual.shape[1] :]
    return np.asarray((np.abs(usual) > error + TINY * size).any(axis=(0, 2)))


def _responses(model: LinearModel, steps: int) -> Floats:
    """Return how far a unit of each action moves each state [steps, S, A], one sample after it first."""
    step, moved = model.matrices
    found = np.zeros((steps, len(model.task.states), len(model.task.actions)))
    for t in range(steps):
        found[t] = np.clip(moved[: found.shape[1]], -_LARGE, _LARGE)
        moved = np.clip(step @ moved, -_LARGE, _LARGE)
    return found


def _solve(u: Floats, v: Floats, q: Floats, r: Floats) -> tuple[Floats, NDArray[np.complex128]]:
    from control import dlqr

    try:
        gain, _, eigenvalues = dlqr(u, v, q, r)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise UnsuitableError(
            f"lqr: there are no gains for these weights: {error}: give other weights with q and r"
        ) from error
    eigenvalues = np.asarray(eigenvalues, np.complex128)
    eigenvalues = eigenvalues[np.lexsort([-eigenvalues.imag, -np.abs(eigenvalues)])]
    if np.abs(eigenvalues[0]) >= UNDAMPED:
        raise UnsuitableError(
            "lqr: with these weights the closed loop never comes to rest: give weights q to more states"
        )
    return np.asarray(gain), eigenvalues


CAUTIONS = (1.0, 0.01, 0.1, 10.0, 100.0)  # factors of the weight of actions that are tried
RESETS = (1.0, 0.3, 3.0)  # and times in which an offset is integrated away, in time constants of the plant


class LQRSearch(Search):
    """One round, which finds the penalties of the designs on the model.

    Where the user gives no weights, several weights of actions and of integrals are tried, and the model
    tells which are best. On the published track the weights follow the rule of this module.
    """

    def __init__(self, problem: Problem, settings: LQR) -> None:
        self.problem = problem
        published = problem.value is None and problem.surrogate.track.name == "published"
        history = problem.history if problem.value is not None else None
        model = identify(problem.task, problem.batch, history=history, plain=published)
        tuned = not (published or settings.q or settings.r)
        self.design = design(problem.task, problem.batch, settings, model=model)
        self.designs = [self.design, *self._others(settings, model)] if tuned else [self.design]
        self._penalty = np.inf

    def _others(self, settings: LQR, model: LinearModel) -> Iterator[Design]:
        resets = RESETS if self.design.integrals else RESETS[:1]
        for factor, reset in list(product(CAUTIONS, resets))[1:]:
            other = replace(settings, caution=settings.caution * factor)
            with suppress(UnsuitableError):
                yield design(self.problem.task, self.problem.batch, other, model=model, reset=reset)

    def advance(self) -> None:
        penalties = [self._judged(one.controller()) for one in self.designs]
        best = int(np.argmin(penalties))
        self.design, self._penalty = self.designs[best], penalties[best]

    def _judged(self, controller: Controller) -> float:
        problem = self.problem
        history = max(problem.history, controller.history)
        policies = encode([controller], problem.task, history=history, dtype=np.float32)
        return float(problem.penalties(policies, starts=len(problem.starts), history=history)[0])

    @property
    def done(self) -> bool:
        return bool(np.isfinite(self._penalty))

    @property
    def best(self) -> float:
        return self._penalty

    def candidates(self) -> list[Candidate]:
        return [Candidate(self.design.controller().for_task(self.problem.task), self._penalty)]

    def state(self) -> State:
        return {"penalty": self._penalty, "design": self.designs.index(self.design)}

    def restore(self, state: State) -> None:
        self._penalty, self.design = state["penalty"], self.designs[state["design"]]


def _complex(value: complex) -> str:
    imaginary = f"{value.imag:+.3f}i"
    return f"{value.real:.3f}" + (imaginary if float(imaginary[:-1]) else "")
