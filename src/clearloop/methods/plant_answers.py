"""What a plant does, in an engineer's words: how each state answers each action, by a linear model.

An answer that settles has a static gain, a time constant and a dead time; one that does not has a slope. All
have standard errors, from models whose numbers differ as much as those of the linear model do. A number whose
standard error is more than a fifth of it is called unknown.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from clearloop.arrays import Floats
from clearloop.methods.identification import Equations
from clearloop.methods.linear_model import LinearModel
from clearloop.numbers import json_values, number

DRAWN = 60  # models that standard errors are taken from
DOUBT = 0.2  # share of a number: if its standard error is larger, the number is unknown
LONGEST = 20_000  # steps of a response
RISEN = 1 - np.exp(-1)  # share of the way after one time constant

Kind = Literal["settles", "integrates", "runs away", "unknown"]


@dataclass(frozen=True)
class Answer:
    """The answer of one state to a step of one action, while the other actions and external states stay."""

    state: str
    action: str
    unit: str
    """of the gain, such as `degC per %`"""
    kind: Kind
    """unknown: the log does not tell whether the state settles, or the model does not follow the log"""
    gain: float
    """the static gain; for a state that integrates, its slope per second"""
    gain_error: float
    time_constant: float | None
    """seconds from the end of the dead time to 63 % of the way; None if the state does not settle"""
    time_error: float
    dead_time: float
    """seconds"""

    @property
    def known(self) -> bool:
        """True if the gain is known to a fifth."""
        return self.kind != "unknown" and self.gain_error <= DOUBT * abs(self.gain)

    @property
    def words(self) -> str:
        """One sentence."""
        name = f"from {self.action} to {self.state}"
        if self.kind == "runs away":
            return f"{self.state} runs away by itself; there is no static gain {name}."
        if self.kind == "unknown":
            why = f"the log does not tell whether {self.state} settles"
            return f"The static gain {name} is unknown: {why}, or the plant is not linear."
        if not self.known:
            return (
                f"The static gain {name} is unknown: {_with_error(self.gain, self.gain_error)} {self.unit}."
            )
        gain = _with_error(self.gain, self.gain_error)
        late = f" after a dead time of {number(self.dead_time, 3)} s" if self.dead_time else ""
        if self.kind == "integrates":
            per_second = self.unit.replace(" per ", "/s per ", 1)
            return f"{self.state} integrates {self.action}{late}: {gain} {per_second}."
        time = "an unknown time constant"
        if self.time_constant is not None and self.time_error <= DOUBT * self.time_constant:
            time = f"a time constant of {_with_error(self.time_constant, self.time_error)} s"
        dead = f" and a dead time of {number(self.dead_time, 3)} s" if self.dead_time else " and no dead time"
        return f"{self.state} answers {self.action} with a static gain of {gain} {self.unit}, {time}{dead}."

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {name: json_values(value) for name, value in vars(self).items()} | {
            "known": self.known,
            "words": self.words,
        }


def find_answers(model: LinearModel) -> tuple[Answer, ...]:
    """Return the answer of each logged state to each action."""
    task, equations = model.task, model.equations
    others = list(equations.drawn(DRAWN, np.random.default_rng(0)))
    kind = _kind(equations, others)
    steps = _length(equations)
    gains, times = _measured(equations, kind, task.dt, steps)
    drawn = [_measured(one, kind, task.dt, steps) for one in others]
    found = []
    for k, state in enumerate(task.predicted):
        for a, action in enumerate(task.action_names):
            if not equations.actions[k].any() and not gains[k, a]:
                continue
            time = float(times[k, a]) if kind == "settles" and np.isfinite(times[k, a]) else None
            units = task.states[state].unit or "1", task.actions[action].unit or "1"
            found.append(
                Answer(
                    state=state,
                    action=action,
                    unit=" per ".join(units),
                    kind=kind,
                    gain=float(gains[k, a]),
                    gain_error=_error([one[0][k, a] for one in drawn]),
                    time_constant=time,
                    time_error=_error([one[1][k, a] for one in drawn]) if time is not None else 0.0,
                    dead_time=float(equations.delays[k, a] * task.dt),
                )
            )
    if kind == "integrates" and not any(answer.known for answer in found):
        return tuple(replace(answer, kind="unknown") for answer in found)
    return tuple(found)


def _with_error(value: float, error: float) -> str:
    """Write a number with its error: two digits of the error, fewer if the number then has over four."""
    if not 0 < abs(value) < 1e6 or not 0 < error < np.inf:
        return f"{number(value, 2)} ± {number(error, 2)}" if error else number(value, 4)
    digits = 3 - math.floor(math.log10(abs(value)))
    places = max(0, min(digits, 1 - math.floor(math.log10(error))))
    return f"{value:.{places}f} ± {math.ceil(error * 10**places) / 10**places:.{places}f}"


def _error(values: list[float]) -> float:
    """Return half the range of the middle two thirds, which outliers do not move."""
    known = np.array(values)
    if not np.isfinite(known).all():
        return float("inf")
    low, high = np.quantile(known, [0.16, 0.84])
    return float((high - low) / 2)


def _largest(equations: Equations) -> complex:
    values = np.linalg.eigvals(_companion(equations))
    return complex(values[np.argmax(np.abs(values))])


def _companion(equations: Equations) -> Floats:
    p, lags, _ = equations.states.shape
    matrix = np.eye(p * lags, k=-p)
    matrix[:p] = equations.states[:, :, :p].reshape(p, -1)
    return matrix


def _kind(equations: Equations, others: list[Equations]) -> Kind:
    """Tell from the slowest mode whether the plant settles; most of the drawn models must agree."""
    if not equations.follows:
        return "unknown"
    sizes = np.array([abs(_largest(one)) for one in others])
    if np.mean(sizes < 1 - 1e-9) >= 0.975:
        return "settles"
    near = abs(_largest(equations) - 1) < 1e-3 or 0.025 < np.mean(sizes < 1) < 0.975
    if near:
        return "integrates" if abs(abs(_largest(equations)) - 1) < 0.01 else "unknown"
    return "runs away"


def _length(equations: Equations) -> int:
    size = min(abs(_largest(equations)), 1 - 1e-9)
    slowest = -1 / np.log(size) if size > 1e-6 else 1.0
    return int(np.clip(8 * slowest + equations.actions.shape[1] + 10, 50, LONGEST))


def _measured(equations: Equations, kind: Kind, dt: float, steps: int) -> tuple[Floats, Floats]:
    """Return the gains and time constants [P, A] of one model, from its responses to steps of each action."""
    p = len(equations.constant)
    depth, actions = equations.actions.shape[1:]
    own, pushes = equations.states[:, :, :p], np.cumsum(equations.actions, axis=1)
    if kind != "settles":
        slow = min(steps, depth + 20)
        response = _response(own, pushes, slow)
        return (response[-1] - response[-2]) / dt, np.full((p, actions), np.nan)
    try:
        gains = np.linalg.solve(np.eye(p) - own.sum(axis=1), pushes[:, -1])
    except np.linalg.LinAlgError:
        return np.full((p, actions), np.inf), np.full((p, actions), np.nan)
    response = _response(own, pushes, steps)
    times = np.full((p, actions), np.nan)
    for k in range(p):
        for a in range(actions):
            share = response[:, k, a] / gains[k, a] if gains[k, a] else np.zeros(steps)
            over = np.flatnonzero(share >= RISEN)
            if over.size:
                at = int(over[0])
                before = share[at - 1] if at else 0.0
                part = at + (RISEN - before) / (share[at] - before)
                times[k, a] = max(part - equations.delays[k, a], 0.0) * dt
    return gains, times


def _response(own: Floats, pushes: Floats, steps: int) -> Floats:
    """Return the responses [steps, P, A] to unit steps, one sample after the step first."""
    p, lags, _ = own.shape
    past = [np.zeros((p, pushes.shape[2])) for _ in range(lags)]
    found = np.zeros((steps, p, pushes.shape[2]))
    for t in range(steps):
        now = pushes[:, min(t, pushes.shape[1] - 1)] + sum(own[:, i] @ past[i] for i in range(lags))
        found[t] = np.clip(now, -1e12, 1e12)
        past = [found[t], *past[:-1]]
    return found
