"""PID control (sec. 3.2 of the paper): one loop for each process variable, tuned with no number set by hand.

1. A loop for each process variable (`process_variables.py`), on the action that moves it most.
2. The critical gain and period of each, and its gains from Ziegler and Nichols' table
   (`ziegler_nichols.py`); every gain that is tried is kept, with its trajectory.
3. What the table leaves open, the weights of the loops and the windows of their integrals, by a particle
   swarm on the model, from the table's own onwards. Ti and Td remain the table's.

In the paper the output has no constant part. A plant that rests at actions other than 0 would keep an offset,
because the sums have windows; so a plant that is not symmetric gets a bias for each action, which the swarm
searches too, from where the linear model rests.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import encode, pid
from clearloop.controllers.pid import LONGEST_WINDOW, Loop
from clearloop.data.log import usual_setpoints
from clearloop.errors import UnsuitableError, check_range
from clearloop.methods.linear_model import find_process_variables, identify, pair_loops
from clearloop.methods.method import Candidate, Column, Laboratory, Method, Problem, Search, State, Trial
from clearloop.numbers import significant
from clearloop.plants.scenarios import setpoint_table
from clearloop.search.pso import PSO, Swarm

# Ziegler and Nichols' second method (1942; sec. 3.2 of the paper), as an engineer would do it, on a model.
#
# A loop under test is proportional only. Its gain is raised, by half octaves and in both signs, from where
# it does nothing, and each time the state is let go from a small deviation. A stable plant's oscillation
# dies out at first; where it no longer does, between two gains, the critical gain is found by bisection; if
# it grows too fast to be seen there, as in plants of first order, or takes the action to its limits, the
# critical gain is the nearest below. An unstable plant runs away at first, and from some gain on
# oscillates, perhaps never quite without growing: then the critical gain is the one whose oscillation is
# nearest to sustained. An oscillation counts as long as the action stays within its limits and the states
# where the model knows them, and only if that is the task's horizon or longer.
#
# Loops are closed one after the other, each with the gains of the table, and the others are tested with it
# in place. Those that cannot hold the plant alone get their turn when others hold it; of several that can,
# the fastest is closed first.

RULE_DIGITS = 6  # of a gain
RUNGS = range(-16, 25)  # half octaves, from the gain that answers a usual deviation with the whole action
OVER = 4  # rungs without an oscillation, after some with one, that end the climb
BISECTIONS = 3
BRACKET = 1.05  # times: what bisection leaves between a gain that oscillates and one that does not
_NEAR = 1.0  # |log ratio|: what grows or dies by more than e in each period is not nearly sustained


@dataclass(frozen=True)
class Critical:
    """A loop's critical gain, and the period of its oscillation in steps."""

    input: str
    action: str
    gain: float
    period: float

    def loop(self, weight: float = 1.0, window: int | None = None) -> Loop:
        """The table: kp = 0.6 k, ki = 1.2 k / p, kd = 0.075 k p, per step.

        Its integral has no window. If none is given, it is a third of the period: then the proportional and
        the integral part together hold what the critical gain held.
        """
        return Loop(
            input=self.input,
            weight=weight,
            kp=significant(0.6 * self.gain, RULE_DIGITS),
            ki=significant(1.2 * self.gain / self.period, RULE_DIGITS),
            kd=significant(0.075 * self.gain * self.period, RULE_DIGITS),
            window=window or min(max(1, round(self.period / 3)), LONGEST_WINDOW),
        )


def find_critical(
    laboratory: Laboratory, closed: Sequence[Critical], state: str, action: str
) -> tuple[Critical | None, list[Trial]]:
    """The critical gain of a loop with others closed, if there is one; and the trials that led there."""
    search = _Climb(laboratory, [(critical.action, critical.loop()) for critical in closed], state, action)
    climbs = [search.up(sign) for sign in (1.0, -1.0)]
    trials = min(climbs, key=lambda climb: (not _passes(climb), _nearest(climb).distance))
    best = _nearest(trials)
    if best.distance > _NEAR and not _is_bracketed(trials):
        return None, trials
    if best.distance > _NEAR:
        best = max((trial for trial in trials if trial.oscillates), key=lambda trial: abs(trial.gain))
    return Critical(
        state, action, significant(best.gain, RULE_DIGITS), significant(best.period, RULE_DIGITS)
    ), trials


@dataclass(frozen=True, eq=False)
class _Climb:
    laboratory: Laboratory
    closed: Sequence[tuple[str, Loop]]
    state: str
    action: str

    def up(self, sign: float) -> list[Trial]:
        """Until an oscillation that died out no longer does, or none is left."""
        unit = sign * self.laboratory.usual_gain(self.state, self.action)
        trials: list[Trial] = []
        for rung in RUNGS:
            trials.append(self._run(unit * 2 ** (rung / 2)))
            if _passes(trials[-2:]):
                return [*trials, *self._between(*trials[-2:])]
            seen = [trial.oscillates for trial in trials]
            if any(seen) and not any(seen[-OVER:]):
                return [*trials, *self._beyond(*trials[-OVER - 1 : -OVER + 1])]
        return trials

    def _beyond(self, low: Trial, high: Trial) -> list[Trial]:
        """Bisection above an oscillation that dies out, where the next one grew too fast to be seen."""
        trials: list[Trial] = []
        while low.ratio < 1 and not _passes([low, *trials]) and len(trials) < BISECTIONS:
            trials.append(self._run(math.copysign(math.sqrt(low.gain * high.gain), low.gain)))
            low, high = (trials[-1], high) if trials[-1].ratio < 1 else (low, trials[-1])
        return trials

    def _between(self, low: Trial, high: Trial) -> list[Trial]:
        """Bisection, and at last by the line through the logarithms."""
        trials: list[Trial] = []
        for _ in range(BISECTIONS):
            trials.append(self._run(math.copysign(math.sqrt(low.gain * high.gain), low.gain)))
            if not trials[-1].oscillates:
                return trials
            low, high = (trials[-1], high) if trials[-1].ratio < 1 else (low, trials[-1])
        share = math.log(low.ratio) / math.log(low.ratio / high.ratio)
        return [*trials, self._run(low.gain * (high.gain / low.gain) ** share)]

    def _run(self, gain: float) -> Trial:
        return self.laboratory.run(self.closed, self.state, self.action, gain)


def _passes(trials: Sequence[Trial]) -> bool:
    """Whether an oscillation that dies out is followed by one that does not."""
    return any(low.ratio < 1 <= high.ratio for low, high in pairwise(trials))


def _is_bracketed(trials: Sequence[Trial]) -> bool:
    """Whether every oscillation dies out, and a little above the last of them there is none."""
    dying = [abs(trial.gain) for trial in trials if trial.ratio < 1]
    others = [abs(trial.gain) for trial in trials if not trial.oscillates]
    only = len(dying) + len(others) == len(trials)
    return bool(dying) and only and any(max(dying) < gain < BRACKET * max(dying) for gain in others)


def _nearest(trials: Sequence[Trial]) -> Trial:
    return min(trials, key=lambda trial: trial.distance)


_DIGITS = 4  # of what the swarm finds
_WEIGHTS = 100.0  # the most that a weight departs from the table's, up or down


@dataclass(frozen=True, kw_only=True)
class PID(Method):
    """Settings of the search; gains are not among them."""

    loops: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """for each action, the states that it looks after; none given: found from task and batch"""
    watched: int = 4
    """horizons that a trial takes"""
    push: float = 0.1
    """deviation that a trial starts from, as a share of the usual one"""
    swarm: PSO = field(default_factory=lambda: PSO(particles=40))
    """for weights, windows and biases"""
    rounds: int = 40
    """of the swarm"""
    starts: int = 256
    """that each particle is tried from"""

    name: ClassVar[str] = "pid"
    title: ClassVar[str] = "PID"
    section: ClassVar[str] = "3.2"
    columns: ClassVar[tuple[Column, ...]] = (Column("pid", "PID", 2, "2.03", "3.04"),)
    effort: ClassVar[float] = 0.3
    grows: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self, "watched", 1, 100)
        check_range(self, "push", 1e-6, 10)
        check_range(self, "rounds starts", 1)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> "PIDSearch":
        return PIDSearch(problem, self, rng)


class PIDSearch(Search):
    """A round for each loop that is closed, then the swarm's."""

    def __init__(self, problem: Problem, settings: PID, rng: np.random.Generator) -> None:
        task, batch = problem.task, problem.batch
        self.problem, self.settings, self.rng = problem, settings, rng
        model = identify(task, batch)
        wanted = find_process_variables(task, batch)
        self.pairs = pair_loops(model, wanted, settings.loops)
        """(state, action) of every loop"""
        deviations, actions = model.rest(np.isin(task.state_names, wanted))
        self.rest: Floats = actions[:0] if task.symmetric else actions
        """[A or 0] that biases are searched from"""
        place = setpoint_table(task, 1, usual_setpoints(task, batch.setpoints))[0] + deviations
        duration = settings.watched * task.horizon
        self.laboratory = Laboratory(problem, place, actions, steps=duration, push=settings.push)
        self.trials: list[Trial] = []
        """every gain that was tried for the loops that were closed"""
        self.closed: list[Critical] = []
        """in the order in which they were closed"""
        self.rounds = 0
        self._swarm: Swarm | None = None

    def advance(self) -> None:
        if len(self.closed) < len(self.pairs):
            self._close()
        else:
            self._tune()

    def _close(self) -> None:
        """Of the loops that are open, the fastest that oscillates with those that are closed."""
        taken = {(critical.input, critical.action) for critical in self.closed}
        rest = [pair for pair in self.pairs if pair not in taken]
        results = [find_critical(self.laboratory, self.closed, *pair) for pair in rest]
        found = [(critical, trials) for critical, trials in results if critical is not None]
        if not found:
            names = " and ".join(f"{state} by {action}" for state, action in rest)
            raise UnsuitableError(
                f"pid: no gain brings a sustained oscillation of {names} on the model: choose other loops "
                "(setting loops), or another method"
            )
        critical, trials = min(found, key=lambda result: result[0].period)
        self.closed.append(critical)
        self.trials += trials

    def _tune(self) -> None:
        swarm = self._swarm or self._new_swarm()
        self._swarm = swarm
        population = [self._controller(vector) for vector in swarm.ask()]
        policies = encode(population, self.problem.task, history=self.problem.history, dtype=np.float32)
        swarm.tell(self.problem.penalties(policies, starts=self.settings.starts))
        self.rounds += 1

    def _new_swarm(self) -> Swarm:
        swarm = Swarm(self._bounds, self.settings.swarm, rng=self.rng)
        swarm.positions[0] = self._table
        return swarm

    @property
    def _bounds(self) -> Floats:
        """[2 L + A or 2 L, 2] of the logarithms of weights, then of windows; then of biases."""
        longest = min(max(2, self.problem.task.horizon), pid.LONGEST_WINDOW)
        weights, windows = math.log(_WEIGHTS), math.log(longest)
        loops = [[-weights, weights]] * len(self.closed) + [[0.0, windows]] * len(self.closed)
        return np.vstack([loops, self.problem.task.action_limits[: len(self.rest)]])

    @property
    def _table(self) -> Floats:
        """What the table alone gives: equal weights, and windows of a third of the periods."""
        windows = [math.log(critical.loop().window) for critical in self.closed]
        vector = np.concatenate([np.zeros(len(windows)), windows, self.rest])
        return np.asarray(np.clip(vector, *self._bounds.T))

    def _controller(self, vector: Floats) -> pid.PID:
        """The weights of an action's loops sum up to 1; the scale is what they summed up to."""
        count = 2 * len(self.closed)
        weights, windows = np.exp(vector[:count]).reshape(2, -1)
        biases = vector[count:] if len(self.rest) else np.zeros(len(self.problem.task.actions))
        outputs = {}
        for action, bias in zip(self.problem.task.action_names, biases, strict=True):
            mine = [k for k, critical in enumerate(self.closed) if critical.action == action]
            total = weights[mine].sum()
            loops = [
                self.closed[k].loop(significant(weights[k] / total, _DIGITS), round(windows[k])) for k in mine
            ]
            outputs[action] = pid.Loops(
                scale=significant(total, _DIGITS), bias=significant(bias, _DIGITS), loops=tuple(loops)
            )
        return pid.PID(outputs=outputs)

    @property
    def done(self) -> bool:
        return self.rounds >= self.settings.rounds

    @property
    def best(self) -> float:
        return math.inf if self._swarm is None else self._swarm.best[1]

    def candidates(self) -> list[Candidate]:
        if len(self.closed) < len(self.pairs):
            return []
        vector = self._table if self._swarm is None else self._swarm.best[0]
        return [Candidate(self._controller(vector).for_task(self.problem.task), self.best)]

    def state(self) -> State:
        return {
            "closed": [asdict(critical) for critical in self.closed],
            "trials": [vars(trial).copy() for trial in self.trials],
            "rounds": self.rounds,
            "swarm": None if self._swarm is None else self._swarm.state(),
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: State) -> None:
        self.closed = [Critical(**critical) for critical in state["closed"]]
        self.trials = [Trial(**trial) for trial in state["trials"]]
        self.rounds = state["rounds"]
        self.rng.bit_generator.state = state["rng"]
        if state["swarm"] is not None:
            self._swarm = Swarm(self._bounds, self.settings.swarm, rng=self.rng)
            self._swarm.restore(state["swarm"])
