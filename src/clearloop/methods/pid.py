"""PID control (sec. 3.2 of the paper) has a loop for each process variable, with no number set by hand.

1. Each process variable (`linear_model.py`) gets a loop on the action that moves it most.
2. The critical gain and period of each loop are found on the model, and its gains follow from Ziegler and
   Nichols' table; every gain that is tried is kept, with its trajectory.
   A loop that no gain brings to oscillate gets the gains of the SIMC rule from the linear model.
3. The table leaves open the weights of the loops and the windows of their integrals. A particle swarm on the
   model finds them, starting at the table's own values. Ti and Td remain the table's.

4. Beside that controller stand those that blocks have: PI, PD, PID, loops that add up, a cascade, gains by a
   state and feed-forward (`pid_structures.py`). The front tells which of them is worth its complexity.

In the paper the output has no constant part. If the actions of the steady state were not 0, this would leave
an offset, because the integrals have windows. So a plant that is not symmetric gets a bias for each action,
which the swarm searches too, starting at the steady state of the linear model.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats, Ints
from clearloop.controllers import encode, pid
from clearloop.controllers.pid import LONGEST_WINDOW, Loop
from clearloop.errors import UnsuitableError, check_range
from clearloop.kernels.engine import Rollout, roll_out
from clearloop.kernels.layout import Job
from clearloop.methods.linear_model import LinearModel, find_process_variables, identify, pair_loops
from clearloop.methods.method import Candidate, Column, Method, Problem, Search, State, Trial
from clearloop.methods.pid_structures import LEAD, Ground, Seed, StructureSearch
from clearloop.methods.plant_answers import find_answers
from clearloop.numbers import significant
from clearloop.search.pso import PSO, Swarm

_DIGITS = 4  # significant digits of what the swarm finds
_WEIGHTS = 100.0  # the largest factor between a weight and the table's, up or down


@dataclass(frozen=True, kw_only=True)
class PID(Method):
    """PID control with Ziegler and Nichols' gains (sec. 3.2 of the paper). The gains are found, not set.

    Attributes:
        loops: The states that each action controls; if none are given, task and batch tell them.
        watched: The length of a trial of a gain, in horizons of the task.
        push: The deviation that a trial starts from, as a share of the usual deviation.
        swarm: Settings of the swarm that finds weights, windows and biases.
        rounds: Rounds of the swarm.
        starts: Starts that each particle is tried from.
        generations: Generations of the descent for each structure of blocks; 0: the paper's loops only.
    """

    loops: dict[str, tuple[str, ...]] = field(default_factory=dict)
    watched: int = 4
    push: float = 0.1
    swarm: PSO = field(default_factory=lambda: PSO(particles=40))
    rounds: int = 40
    starts: int = 256
    generations: int = 40

    name: ClassVar[str] = "pid"
    title: ClassVar[str] = "PID"
    section: ClassVar[str] = "3.2"
    columns: ClassVar[tuple[Column, ...]] = (Column("pid", "PID", 2, "2.03", "3.04"),)
    tabled: ClassVar[Mapping[str, Any]] = {"generations": 0}  # the paper's loops
    effort: ClassVar[float] = 1.5
    grows: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self, "watched", 1, 100)
        check_range(self, "push", 1e-6, 10)
        check_range(self, "rounds starts", 1)
        check_range(self, "generations", 0, 10_000)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> "PIDSearch":
        return PIDSearch(problem, self, rng)


class PIDSearch(Search):
    """A search that closes one loop in each round, and then runs the rounds of the swarm."""

    def __init__(self, problem: Problem, settings: PID, rng: np.random.Generator) -> None:
        task, batch = problem.task, problem.batch
        self.problem, self.settings, self.rng = problem, settings, rng
        published = problem.surrogate.track.name == "published"
        self.model = identify(task, batch, plain=published)
        model = self.model
        wanted = find_process_variables(task, batch)
        self.pairs = pair_loops(model, wanted, settings.loops)
        """(state, action) of every loop"""
        place, actions = model.rest(np.isin(task.state_names, wanted))
        self.rest: Floats = actions[:0] if task.symmetric else actions
        """[A or 0] actions of the steady state, at which the search for biases starts"""
        duration = settings.watched * task.horizon
        self.laboratory = Laboratory(problem, place, actions, steps=duration, push=settings.push)
        self.trials: list[Trial] = []
        """every gain that was tried for the loops that were closed"""
        self.closed: list[Critical] = []
        """in the order in which they were closed"""
        self.rounds = 0
        self._swarm: Swarm | None = None
        self._plain = published or not settings.generations
        self._structures: StructureSearch | None = None

    def advance(self) -> None:
        if len(self.closed) < len(self.pairs):
            self._close()
        elif self.rounds < self.settings.rounds:
            self._tune()
        else:
            self._structures = self._structures or self._new_structures()
            self._structures.advance()

    def _close(self) -> None:
        """Close the fastest of the open loops that oscillate while the closed loops are in place."""
        taken = {(critical.input, critical.action) for critical in self.closed}
        rest = [pair for pair in self.pairs if pair not in taken]
        results = [find_critical(self.laboratory, self.closed, *pair) for pair in rest]
        found = [(critical, trials) for critical, trials in results if critical is not None]
        found = found or [
            (one, []) for pair in rest if (one := from_linear_model(self.model, *pair)) is not None
        ]
        if not found:
            names = " and ".join(f"{state} by {action}" for state, action in rest)
            raise UnsuitableError(
                f"pid: no gain gives a sustained oscillation of {names} on the model, and by the linear "
                "model of the log the action does not move the state: choose other loops (setting loops), or "
                "another method"
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
        """[2 L + A or 2 L, 2] the bounds of log weights, then of log windows, then of biases."""
        longest = min(max(2, self.problem.task.horizon), pid.LONGEST_WINDOW)
        weights, windows = math.log(_WEIGHTS), math.log(longest)
        loops = [[-weights, weights]] * len(self.closed) + [[0.0, windows]] * len(self.closed)
        return np.vstack([loops, self.problem.task.action_limits[: len(self.rest)]])

    @property
    def _table(self) -> Floats:
        """[2 L + A or 2 L] the vector of the table: equal weights, and windows of a third of the periods."""
        windows = [math.log(critical.loop().window) for critical in self.closed]
        vector = np.concatenate([np.zeros(len(windows)), windows, self.rest])
        return np.asarray(np.clip(vector, *self._bounds.T))

    def _controller(self, vector: Floats) -> pid.PID:
        """Return the controller of a vector; the weights of an action's loops are divided by their sum."""
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
        other = [critical.input for critical in self.closed if critical.reset]
        if not other:
            return pid.PID(outputs=outputs)
        names = ", ".join(dict.fromkeys(other))
        return pid.PID(outputs=outputs, name=f"PID; {names}: SIMC, as no gain gives a sustained oscillation")

    def _new_structures(self) -> StructureSearch:
        ground = Ground(self.problem, self.model, tuple(one.seed() for one in self.closed), self.rest)
        settings = self.settings
        return StructureSearch(ground, rounds=settings.generations, starts=settings.starts, rng=self.rng)

    @property
    def done(self) -> bool:
        if self.rounds < self.settings.rounds or self._plain:
            return self.rounds >= self.settings.rounds
        return self._structures is not None and self._structures.done

    @property
    def best(self) -> float:
        paper = math.inf if self._swarm is None else self._swarm.best[1]
        return paper if self._structures is None else min(paper, self._structures.best)

    def candidates(self) -> list[Candidate]:
        if len(self.closed) < len(self.pairs):
            return []
        vector, cost = (self._table, math.inf) if self._swarm is None else self._swarm.best
        found = [Candidate(self._controller(vector).for_task(self.problem.task), cost)]
        return found if self._structures is None else [*found, *self._structures.candidates()]

    def state(self) -> State:
        return {
            "closed": [asdict(critical) for critical in self.closed],
            "trials": [vars(trial).copy() for trial in self.trials],
            "rounds": self.rounds,
            "swarm": None if self._swarm is None else self._swarm.state(),
            "structures": None if self._structures is None else self._structures.state(),
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
        if state.get("structures") is not None:  # runs of version 0.1 have none
            self._structures = self._new_structures()
            self._structures.restore(state["structures"])


# The oscillation of a signal is found from its turning points, wherever its middle is.

FEWEST = 4  # turning points: three swings, of which the last is compared to the first
FADED = 1e-6  # share of the range so far; smaller swings are rounding


class Oscillation(NamedTuple):
    """The period and the growth of an oscillation."""

    period: float
    """period in samples"""
    ratio: float
    """size of a swing relative to the swing a period before: 1 is sustained, less dies out, more grows"""


def find_oscillation(signal: Floats) -> Oscillation | None:
    """Return the oscillation of a signal, or None if it has too few turning points.

    Only the later half of the swings counts, when the other motions that the start caused have died out.
    """
    times, values = _turning_points(signal)
    swings = np.abs(np.diff(values))
    reach = np.maximum.accumulate(signal) - np.minimum.accumulate(signal)
    faded = swings < FADED * reach[times[1:].astype(np.int64)]
    if faded.any():
        swings = swings[: np.argmax(faded)]
    if len(swings) < FEWEST - 1:
        return None
    first = min((len(swings) - 1) // 2, len(swings) - FEWEST + 1)
    steps = len(swings) - 1 - first
    period = max(2.0, 2 * (times[len(swings)] - times[first]) / (len(swings) - first))  # nothing is faster
    return Oscillation(float(period), float((swings[-1] / swings[first]) ** (2 / steps)))


def _turning_points(signal: Floats) -> tuple[Floats, Floats]:
    """Return the times and values at which a signal turns, by parabolas through the nearest three samples."""
    slopes = np.sign(np.diff(signal))
    at = np.flatnonzero(slopes[1:] * slopes[:-1] < 0) + 1
    before, here, after = signal[at - 1], signal[at], signal[at + 1]
    shift = (before - after) / (2 * (before - 2 * here + after))
    return at + shift, here - (before - after) * shift / 4


@dataclass(frozen=True, eq=False)
class Laboratory:
    """Trials of gains on the members of the search, around a steady state."""

    problem: Problem
    states: Floats
    """[S] the steady state"""
    actions: Floats
    """[A] its actions"""
    steps: int
    """T, steps of a trial"""
    push: float
    """deviation at the start: a share of the usual one, or of the largest that the action can answer"""

    def usual_gain(self, state: str, action: str) -> float:
        """Return the gain that answers the usual deviation of a state with the largest action."""
        task, scales = self.problem.task, self.problem.scales
        reach = scales[len(task.states) + task.action_names.index(action)]
        return float(reach / scales[task.state_names.index(state)])

    def run(self, closed: Sequence[tuple[str, Loop]], state: str, action: str, gain: float) -> Trial:
        """Try a gain: release the state from a small deviation under proportional control.

        Args:
            closed: The other loops that are closed, each with the name of its action.
            state: The state that is controlled.
            action: The action that controls it.
            gain: The proportional gain.
        """
        task = self.problem.task
        i, a = task.state_names.index(state), task.action_names.index(action)
        part = min(1.0, self.usual_gain(state, action) / abs(gain))
        start, aims = self.states.copy(), np.tile(self.states, (self.steps, 1))
        start[i] += self.push * part * self.problem.scales[i]
        aims[:, i] += self.actions[a] / gain  # so that the action is that of the steady state at no deviation
        loops = [*closed, (action, Loop(input=state, kp=gain))]
        states, actions, failed = self._roll_out(_with_loops(task.action_names, loops), start, aims)
        held = self._held(states, actions[:, :, a], failed, task.action_limits[a])
        seen = [self._look(member[:, i], int(steps)) for member, steps in zip(states, held, strict=True)]
        found = [oscillation for oscillation in seen if oscillation is not None]
        period, ratio = np.median(found, axis=0) if 2 * len(found) > len(seen) else (math.nan, math.nan)
        errors = np.append(aims[:, i], aims[-1, i]) - states[0, :, i]
        return Trial(state, action, gain, float(period), float(ratio), errors, actions[0, :, a].copy())

    def _roll_out(self, controller: pid.PID, start: Floats, aims: Floats) -> tuple[Floats, Floats, Flags]:
        """Return states [M, T + 1, S], actions [M, T, A], and whether each member failed [M]."""
        problem = self.problem
        members = problem.surrogate.search_members
        policies = encode([controller], problem.task, history=problem.history)
        rollout: Rollout = roll_out(
            # Small swings are not rounded away, and may jump.
            policies._replace(counts=np.zeros_like(policies.counts), rates=np.zeros(0)),
            problem.surrogate.system(np.float64, members, problem.history),
            Job(
                start[None],
                aims,
                problem.task.discount,
                problem.history,
                before=problem.task.action_starts,
            ),
            trajectories=True,
        )
        problem.spent += len(members) * self.steps
        states, actions = np.asarray(rollout.states), np.asarray(rollout.actions)
        return states[:, 0, 0], actions[:, 0, 0], rollout.failed[:, 0, 0]

    def _held(self, states: Floats, actions: Floats, failed: Flags, limits: Floats) -> Ints:
        """Return the steps [M] until the action is at a limit, or the model fails or leaves its region."""
        least, most = self.problem.surrogate.region[: states.shape[2]].T
        after = states[:, 1:]
        stuck = (after == states[:, :-1]).all(axis=2) & failed[:, None]
        known = ((after >= least) & (after <= most)).all(axis=2)
        fine = known & ~stuck & (actions > limits[0]) & (actions < limits[1])
        ends = np.pad(fine, ((0, 0), (0, 1)))  # a last step that is not fine ends every row
        return np.asarray(np.argmin(ends, axis=1))

    def _look(self, course: Floats, held: int) -> Oscillation | None:
        return find_oscillation(course[: held + 1]) if held >= self.problem.task.horizon else None


def _with_loops(actions: Sequence[str], loops: Sequence[tuple[str, Loop]]) -> pid.PID:
    """Return a controller with these loops; an action without a loop does nothing."""
    nothing = (loops[-1][1].model_copy(update={"kp": 0.0}),)
    chosen = {name: tuple(loop for action, loop in loops if action == name) for name in actions}
    return pid.PID(outputs={name: pid.Loops(loops=some or nothing) for name, some in chosen.items()})


# Ziegler and Nichols' second method (1942; sec. 3.2 of the paper), as an engineer would use it, on a model.
#
# A loop under test is proportional only. Its gain is raised by half octaves, in both signs, from a gain that
# has no effect, and each time the state is released from a small deviation. The oscillation of a stable plant
# dies out at first; between the last gain at which it does and the next one, bisection finds the critical
# gain. If the oscillation at the next gain grows too fast to be seen, as in plants of first order, or takes
# the action to its limits, the critical gain is the nearest below. An unstable plant runs away at first and
# oscillates from some gain on, perhaps always growing: then the critical gain is the one whose oscillation is
# nearest to sustained. An oscillation counts only while the action is within its limits and the states are in
# the region that the model knows, and only if that is the task's horizon or longer.
#
# Loops are closed one after the other with the gains of the table, and the others are tested with them in
# place. Loops that cannot stabilise the plant alone are tested again when others do; of several that can, the
# fastest is closed first.

RULE_DIGITS = 6  # significant digits of a gain
RUNGS = range(-16, 25)  # half octaves, from the gain that answers a usual deviation with the largest action
OVER = 4  # rungs without an oscillation, after some with one, that end the climb
BISECTIONS = 3
BRACKET = 1.05  # the largest ratio of a gain without an oscillation to the next one below with an oscillation
_NEAR = (
    1.0  # |log ratio|: an oscillation that grows or dies by more than e in each period is not near sustained
)


@dataclass(frozen=True)
class Critical:
    """The critical gain of a loop, and the period of its oscillation in steps."""

    input: str
    action: str
    gain: float
    period: float
    reset: float = 0.0
    """the integral time in steps of a loop with the gain itself (`from_linear_model`); 0: by the table"""

    def loop(self, weight: float = 1.0, window: int | None = None) -> Loop:
        """Return the loop of the table: kp = 0.6 k, ki = 1.2 k / p, kd = 0.075 k p, per step.

        Args:
            weight: The weight of the loop among those of its action.
            window: The window of the integral in steps, which the table lacks. None takes a third of the
                period: then the proportional and the integral part together hold what the critical gain held.
        """
        if self.reset:
            return Loop(
                input=self.input,
                weight=weight,
                kp=significant(self.gain, RULE_DIGITS),
                ki=significant(self.gain / self.reset, RULE_DIGITS),
                window=window or min(max(1, round(2 * self.reset)), LONGEST_WINDOW),
            )
        return Loop(
            input=self.input,
            weight=weight,
            kp=significant(0.6 * self.gain, RULE_DIGITS),
            ki=significant(1.2 * self.gain / self.period, RULE_DIGITS),
            kd=significant(0.075 * self.gain * self.period, RULE_DIGITS),
            window=window or min(max(1, round(self.period / 3)), LONGEST_WINDOW),
        )

    def seed(self) -> Seed:
        """Return what searches for other structures start from."""
        loop = self.loop()
        reset = loop.kp / loop.ki
        return Seed(self.input, self.action, loop.kp, reset, loop.kd / loop.kp or LEAD * reset)


def find_critical(
    laboratory: Laboratory, closed: Sequence[Critical], state: str, action: str
) -> tuple[Critical | None, list[Trial]]:
    """Find the critical gain of a loop on the model.

    Args:
        laboratory: The trials of gains.
        closed: The loops that are already closed.
        state: The state that the loop controls.
        action: The action that controls it.

    Returns:
        The critical gain, or None if there is none; and the trials that led there.
    """
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


def from_linear_model(model: LinearModel, state: str, action: str) -> Critical | None:
    """Return the gains of a PI loop by the SIMC rule (Skogestad 2003), for a loop that does not oscillate.

    The rule takes the plant for one of first order with dead time: gain k, time constant T and dead time θ.
    With the closed-loop time constant C = max(θ, T / 4, one step), the proportional gain is T / (k (C + θ))
    and the integral time is min(T, 4 (C + θ)). For a plant that integrates or runs away, its slope is k / T.

    Returns:
        The loop, or None if the action does not move the state.
    """
    answers = {(one.state, one.action): one for one in find_answers(model)}
    answer = answers.get((state, action))
    if answer is None or not answer.gain or not math.isfinite(answer.gain):
        return None
    dt = model.task.dt
    late = answer.dead_time / dt + 1
    if answer.time_constant is not None:
        lag = max(answer.time_constant / dt, 1.0)
        closed = max(late, lag / 4)
        gain, reset = lag / (answer.gain * (closed + late)), min(lag, 4 * (closed + late))
    else:
        closed = max(late, model.task.horizon / 20)
        gain, reset = 1 / (answer.gain * dt * (closed + late)), 4 * (closed + late)
    return Critical(
        state,
        action,
        significant(gain, RULE_DIGITS),
        significant(4 * (closed + late), RULE_DIGITS),
        significant(max(reset, 1.0), RULE_DIGITS),
    )


@dataclass(frozen=True, eq=False)
class _Climb:
    laboratory: Laboratory
    closed: Sequence[tuple[str, Loop]]
    state: str
    action: str

    def up(self, sign: float) -> list[Trial]:
        """Raise the gain until the oscillation no longer dies out, or there is no oscillation any more."""
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
        """Bisect above an oscillation that dies out, if the next one grew too fast to be seen."""
        trials: list[Trial] = []
        while low.ratio < 1 and not _passes([low, *trials]) and len(trials) < BISECTIONS:
            trials.append(self._run(math.copysign(math.sqrt(low.gain * high.gain), low.gain)))
            low, high = (trials[-1], high) if trials[-1].ratio < 1 else (low, trials[-1])
        return trials

    def _between(self, low: Trial, high: Trial) -> list[Trial]:
        """Bisect, and then take the zero of the line through the logarithms of the ratios."""
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
    """Tell whether an oscillation that dies out is followed by one that does not."""
    return any(low.ratio < 1 <= high.ratio for low, high in pairwise(trials))


def _is_bracketed(trials: Sequence[Trial]) -> bool:
    """Tell whether every oscillation dies out, and slightly above the last of them there is none."""
    dying = [abs(trial.gain) for trial in trials if trial.ratio < 1]
    others = [abs(trial.gain) for trial in trials if not trial.oscillates]
    only = len(dying) + len(others) == len(trials)
    return bool(dying) and only and any(max(dying) < gain < BRACKET * max(dying) for gain in others)


def _nearest(trials: Sequence[Trial]) -> Trial:
    return min(trials, key=lambda trial: trial.distance)
