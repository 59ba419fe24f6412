"""The linear quadratic regulator (LQR, sec. 3.1 of the paper) is designed for a linear model of the batch.

LQR knows neither limits nor rewards: it weighs squared deviations by Q and squared actions by R. Weights that
are not given follow one rule, in the units of the log. Every state and action is measured by the power of ten
nearest to its size. The size of a state is its standard deviation in the batch, or half of the start box if
that is more; the size of an action is half its range. In these units, a process variable weighs 1
(`linear_model.py`: states that the reward reads or that have a setpoint, without their rates of change), any
other state 0.1, and an action 10, because the plant does not get what LQR asks for beyond the limits. For the
cart-pole this is Q = diag(1, 0.1, 1, 0.1), R = 0.1.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Equation, Linear, encode
from clearloop.controllers.controller import check_names
from clearloop.data import Batch
from clearloop.errors import UnsuitableError, check_range
from clearloop.methods.linear_model import CERTAIN, TINY, LinearModel, find_process_variables, identify
from clearloop.methods.method import Candidate, Column, Method, Problem, Search, State
from clearloop.numbers import significant
from clearloop.task import Task

_DIGITS = 6  # significant digits of a gain
_NEGLIGIBLE = (
    0.01  # share of an action's range: if no constant is larger, the controller has none and is linear
)
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

    The state z of `LinearModel` has n entries.
    """

    model: LinearModel
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

    def controller(self) -> Controller:
        """Return a linear controller, or an equation if the actions of the steady state are not 0."""
        task = self.model.task
        rows = {
            action: {
                name: significant(-gain, _DIGITS) for name, gain in zip(self.model.names, row, strict=True)
            }
            for action, row in zip(task.action_names, self.gain, strict=True)
        }
        if (np.abs(self.constant) <= _NEGLIGIBLE * np.ptp(task.action_limits, axis=1)).all():
            return Linear(name=self.title, gains=rows)
        sums = {
            action: f"{significant(constant, _DIGITS)!r}"
            + "".join(f" {g:+.{_DIGITS}g}*{name}" for name, g in row.items())
            for (action, row), constant in zip(rows.items(), self.constant, strict=True)
        }
        return Equation(name=self.title, outputs=sums)

    @property
    def law(self) -> Floats:
        """[A, H, S + A] the gains from the window to the action, the present first; 0 for present actions."""
        model = self.model
        s, a, h = len(model.task.states), len(model.task.actions), model.history
        law = np.zeros((a, h, s + a))
        law[:, :, :s] = -self.gain[:, : h * s].reshape(a, h, s)
        law[:, 1:, s:] = -self.gain[:, h * s :].reshape(a, h - 1, a)
        return law

    @property
    def title(self) -> str:
        """The controller's name in one line, with as many eigenvalues of the closed loop as fit."""
        text = f"LQR; closed loop: {', '.join(map(_complex, self.eigenvalues))}"
        return text if len(text) <= 200 else text[:199] + "…"


def design(task: Task, batch: Batch, settings: LQR) -> Design:
    """Design a linear quadratic regulator from the batch alone, by the equations of sec. 3.1.

    Raises:
        UnsuitableError: The batch does not determine a linear model, an undamped mode cannot be controlled,
            or the weights give no stable closed loop.
    """
    check_names("lqr.q", settings.q, "a state", task.state_names)
    check_names("lqr.r", settings.r, "an action", task.action_names)
    wanted = find_process_variables(task, batch)
    model = identify(task, batch)
    _check_controllable(model)
    q, r = _weights(model, wanted, settings)
    u, v = model.matrices
    gain, eigenvalues = _solve(u, v, np.diag(np.append(q, np.zeros(len(u) - len(q)))), np.diag(r))
    deviations, actions = model.rest(np.isin(task.state_names, wanted))
    held = np.concatenate([np.tile(deviations, model.history), np.tile(actions, model.history - 1)])
    return Design(model, q, r, gain, eigenvalues, actions + gain @ held)


def _weights(model: LinearModel, wanted: tuple[str, ...], settings: LQR) -> tuple[Floats, Floats]:
    task = model.task
    count = len(task.states)
    sizes = model.sizes.copy()
    if task.start_box is not None:
        sizes[:count] = np.maximum(sizes[:count], np.ptp(task.start_box, axis=1) / 2)
    units = 10.0 ** np.round(np.log10(sizes))
    shares = [1.0 if name in wanted else 0.1 for name in task.state_names]
    q = [settings.q.get(n, w / unit**2) for n, w, unit in zip(task.state_names, shares, units, strict=False)]
    r = [
        settings.r.get(n, settings.caution / unit**2)
        for n, unit in zip(task.action_names, units[count:], strict=True)
    ]
    return np.array(q), np.array(r)


def _check_controllable(model: LinearModel) -> None:
    """Check that an action clearly moves every mode that does not die out (Popov, Belevitch, Hautus)."""
    u, v = model.matrices
    s = len(model.task.states)
    doubt = model.spread[s : s + v.shape[1]]
    values, modes = np.linalg.eig(u.T)
    for mode in modes.T[np.abs(values) >= UNDAMPED]:
        error = CERTAIN * doubt * np.linalg.norm(np.abs(mode[:s]) * model.residual)
        floor = TINY * (np.abs(mode[:s]) @ model.sizes[:s]) / model.sizes[s:]
        if (np.abs(mode @ v) <= error + floor).all():
            shares = np.abs(mode[:s]) * model.sizes[:s]
            names = [n for n, x in zip(model.task.state_names, shares, strict=True) if x > 0.5 * shares.max()]
            raise UnsuitableError(
                f"lqr: uncontrollable: no action moves {' and '.join(names)}, which does not come to rest by "
                "itself: add the action that moves it, or leave it out of the task"
            )


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


class LQRSearch(Search):
    """One round, which finds the penalty of the design on the model."""

    def __init__(self, problem: Problem, settings: LQR) -> None:
        self.problem = problem
        self.design = design(problem.task, problem.batch, settings)
        self._penalty = np.inf

    def advance(self) -> None:
        problem, controller = self.problem, self.design.controller()
        policies = encode([controller], problem.task, history=problem.history, dtype=np.float32)
        self._penalty = float(problem.penalties(policies, starts=len(problem.starts))[0])

    @property
    def done(self) -> bool:
        return bool(np.isfinite(self._penalty))

    @property
    def best(self) -> float:
        return self._penalty

    def candidates(self) -> list[Candidate]:
        return [Candidate(self.design.controller().for_task(self.problem.task), self._penalty)]

    def state(self) -> State:
        return {"penalty": self._penalty}

    def restore(self, state: State) -> None:
        self._penalty = state["penalty"]


def _complex(value: complex) -> str:
    imaginary = f"{value.imag:+.3f}i"
    return f"{value.real:.3f}" + (imaginary if float(imaginary[:-1]) else "")
