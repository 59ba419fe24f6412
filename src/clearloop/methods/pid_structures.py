"""Structures of PID controllers beside the paper's, as blocks have them, and the search for their numbers.

An engineer would try one loop with two or three parts, then several loops that add up, a cascade, gains that
depend on a state, and feed-forward. So does this search: each structure gets a descent by CMA-ES on the
model, which begins at the numbers of the loops that `pid.py` has closed. Gains and times are searched as
logarithms and keep their signs. Which structure is worth its complexity, the front tells.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import encode, pid
from clearloop.controllers.loops import Loop, Loops, OuterLoop, Schedule
from clearloop.expression import Variable
from clearloop.methods.linear_model import LinearModel
from clearloop.methods.method import Candidate, Problem, State
from clearloop.methods.pid_rules import FILTER
from clearloop.numbers import significant
from clearloop.search.cma import CMA, Descent

DIGITS = 4  # significant digits of what is found
REACH = 100.0  # the factor, up or down, by which a gain or a time may differ from where it starts
LEAST_FILTER = 0.3  # steps, at the start
LEAD = 0.125  # Td/Ti of a loop that starts from a PI
FASTER = 0.5  # an inner loop's state rises in less than this share of the outer one's time
MOST_FED = 4  # variables that are fed forward
MOST_SCHEDULES = 2  # states that gains may depend on, each in a structure of its own
ENDS = (0.1, 0.9)  # quantiles of the log between which scheduled gains change
CANDIDATES = 20  # of a generation
COARSE = 4  # the share of the starts, as its inverse, in the first half of the rounds, on one member


@dataclass(frozen=True)
class Seed:
    """A loop to start from, in the unit of the action and in steps."""

    state: str
    action: str
    kp: float
    ti: float
    td: float


class Numbers:
    """The numbers of a structure: without a vector it collects their bounds, with one it gives its entries.

    So one function both says what is searched and makes the loops.
    """

    def __init__(self, vector: Floats | None = None) -> None:
        self._left = None if vector is None else iter(vector.tolist())
        self.starts: list[float] = []
        self.bounds: list[tuple[float, float]] = []

    def size(self, start: float) -> float:
        """Return a number of the sign of `start`, within a factor `REACH` of it."""
        middle, reach = math.log(max(abs(start), 1e-12)), math.log(REACH)
        found = math.exp(self.place(middle, middle - reach, middle + reach))
        return significant(math.copysign(found, start), DIGITS)

    def place(self, start: float, low: float, high: float) -> float:
        """Return a number between two bounds."""
        if self._left is None:
            self.starts.append(min(max(start, low), high))
            self.bounds.append((low, high))
            return start
        return float(next(self._left))

    def level(self, start: float, low: float, high: float) -> float:
        """Return a number between two bounds as it is written in a file."""
        return significant(self.place(start, low, high), DIGITS)


@dataclass(frozen=True)
class Structure:
    """A structure of a controller.

    Attributes:
        name: What an engineer calls it.
        build: Makes the loops of each action from numbers.
    """

    name: str
    build: Callable[[Numbers], dict[str, Loops]]

    @property
    def box(self) -> tuple[Floats, Floats]:
        """The numbers [d] to start from and their bounds [d, 2]."""
        numbers = Numbers()
        self.build(numbers)
        return np.array(numbers.starts), np.array(numbers.bounds)

    def controller(self, vector: Floats) -> pid.PID:
        """Return the controller of a vector [d]."""
        return pid.PID(name=self.name, outputs=self.build(Numbers(vector)))


# What structures there are for a task.


@dataclass(frozen=True, eq=False)
class Ground:
    """What structures are made from: a problem, its linear model, closed loops, and the actions at rest."""

    problem: Problem
    model: LinearModel
    seeds: tuple[Seed, ...]
    """in the order in which they were closed: the fastest of each action first"""
    rest: Floats
    """[A] actions of the steady state; [0] if the plant is symmetric, whose loops have no bias"""

    def structures(self) -> Iterator[Structure]:
        """Yield all structures that suit the task, the simple ones first."""
        for letters in ("PI", "PD", "PID"):
            yield Structure(letters, partial(self._sums, letters=letters, single=True))
        several = any(len(self._of(action)) > 1 for action in self._actions)
        loops = " loops that add up" if several else ""
        if several:
            for letters in ("PD", "PID"):
                yield Structure(f"{letters}{loops}", partial(self._sums, letters=letters))
        inner = {action: self._inner(action) for action in self._actions}
        if any(inner.values()):
            for outer, within in (("PD", "PD"), ("PI", "P"), ("PI", "PI")):
                name = f"cascade, {outer} over {within}"
                yield Structure(name, partial(self._cascades, letters=(outer, within), inner=inner))
        if self._fed:
            for letters in ("PI", "PID"):
                name = f"{letters}{loops} with feed-forward"
                yield Structure(name, partial(self._sums, letters=letters, fed=True))
        for by in self._scheduling[:MOST_SCHEDULES]:
            for letters in ("PI", "PID"):
                name = f"{letters}{loops}, gains by {by}"
                yield Structure(name, partial(self._sums, letters=letters, by=by))
                if self._fed:
                    name += ", with feed-forward"
                    yield Structure(name, partial(self._sums, letters=letters, by=by, fed=True))

    @property
    def _actions(self) -> tuple[str, ...]:
        return self.problem.task.action_names

    def _of(self, action: str) -> list[Seed]:
        return [seed for seed in self.seeds if seed.action == action]

    @property
    def _fed(self) -> list[Variable]:
        """Setpoints of controlled states that move, and external states that vary."""
        aims = [one for one in self.problem.moving_setpoints if one.name in {s.state for s in self.seeds}]
        return [*aims, *map(Variable, self._varying)][:MOST_FED]

    @property
    def _varying(self) -> list[str]:
        task, spread = self.problem.task, self.model.sizes
        return [name for name in task.scope.external if spread[task.state_names.index(name)] > 0]

    @property
    def _scheduling(self) -> list[str]:
        """States that gains may depend on: controlled ones and external ones."""
        return list(dict.fromkeys([*(seed.state for seed in self.seeds), *self._varying]))

    def _inner(self, action: str) -> Seed | None:
        """Return the inner loop of a cascade: on the fastest state that the action moves earlier.

        The outer loop is that of the slowest state which the action controls.
        """
        mine = self._of(action)
        if len(mine) > 1:
            return mine[0]
        times, signs = self._rises(action)
        names = self.problem.task.state_names
        outer = times[names.index(mine[0].state)] if mine else 0.0
        fast = [k for k in range(len(names)) if times[k] < FASTER * outer]
        if not fast:
            return None
        k, a = min(fast, key=lambda k: times[k]), self._actions.index(action)
        gain = signs[k] * self.model.sizes[len(names) + a] / self.model.sizes[k]
        late = max(2.0, 2 * times[k])
        return Seed(names[k], action, float(gain), late, LEAD * late)

    def _rises(self, action: str) -> tuple[Floats, Floats]:
        """Return after how many steps each state has risen [S], and to which side, after a step of an action.

        Sums of the past never rise, and what the action does not move neither.
        """
        step, pushes = self.model.matrices
        s, horizon = len(self.problem.task.states), self.problem.task.horizon
        push = pushes[:, self._actions.index(action)]
        state, course = np.zeros(len(step)), []
        for _ in range(horizon):
            state = np.clip(step @ state + push, -1e9, 1e9)
            course.append(state[:s])
        moved = np.abs(course)
        ends = moved[-1]
        rises = np.argmax(moved >= (1 - math.exp(-1)) * ends, axis=0) + 1.0
        external = np.isin(self.problem.task.state_names, self.problem.task.scope.external)
        idle = (ends < 1e-9) | external | (self.model.sizes[:s] <= 0)
        return np.where(idle, np.inf, rises), np.sign(np.array(course)[-1])

    # The parts of a controller.

    def _sums(
        self,
        numbers: Numbers,
        letters: str,
        *,
        single: bool = False,
        by: str | None = None,
        fed: bool = False,
    ) -> dict[str, Loops]:
        """Make loops that add up for each action, or only the first one of each."""
        found = {}
        for action in self._actions:
            mine = self._of(action)[: 1 if single else None]
            loops = tuple(self._loop(numbers, seed, letters, by) for seed in mine)
            found[action] = Loops(loops=loops or self._nothing, **self._around(numbers, action, fed=fed))
        return found

    @property
    def _nothing(self) -> tuple[Loop]:
        """The loops of an action that controls nothing."""
        return (Loop(input=self.seeds[0].state, kp=0.0),)

    def _cascades(
        self, numbers: Numbers, letters: tuple[str, str], inner: dict[str, Seed | None]
    ) -> dict[str, Loops]:
        """Make a cascade for each action that has an inner loop, and single loops for the others."""
        found = {}
        for action in self._actions:
            within, mine = inner[action], self._of(action)
            around = self._around(numbers, action, fed=False)
            if within is None or not mine:
                loops = tuple(self._loop(numbers, seed, "PID") for seed in mine[:1])
                found[action] = Loops(loops=loops or self._nothing, **around)
                continue
            main = mine[-1]
            outside = Seed(main.state, action, main.kp / within.kp, main.ti, main.td)
            outer = self._loop(numbers, outside, letters[0]).model_dump(exclude_none=True)
            inside = self._loop(numbers, within, letters[1])
            found[action] = Loops(outer=OuterLoop(**outer), inner=inside, **around)
        return found

    def _loop(self, numbers: Numbers, seed: Seed, letters: str, by: str | None = None) -> Loop:
        table: dict[str, Any] = {"input": seed.state}
        gains: dict[str, Any] = {}
        ends = self._ends(by) if by else ()
        if ends:  # of three points the last is a mirror image of the first
            kp = [numbers.size(seed.kp), numbers.size(seed.kp)]
            gains["kp"] = (*kp, *kp[: len(ends) - 2])
        else:
            gains["kp"] = numbers.size(seed.kp)
        if "I" in letters:
            gains["ki"] = _times(gains["kp"], 1 / numbers.size(seed.ti))
            table["integral"] = True
            if self._aims(seed.state):
                table["setpoint_weight"] = numbers.level(1.0, 0.0, 1.5)
        if "D" in letters:
            gains["kd"] = _times(gains["kp"], numbers.size(seed.td))
            table["filter"] = numbers.size(max(seed.td / FILTER, LEAST_FILTER))
            if self._aims(seed.state):
                table["derivative_of"] = "measurement"
        if by and ends:
            return Loop(**table, kp=0.0, schedule=Schedule(by=by, at=ends, **gains))
        return Loop(**table, **gains)

    def _aims(self, state: str) -> bool:
        """Tell whether the state has a setpoint that moves."""
        return state in self.problem.task.logged_setpoints

    def _ends(self, by: str) -> tuple[float, ...]:
        """Return the points of a schedule; for a plant that is symmetric they are so, too."""
        values = self.problem.batch.states[:, self.problem.task.state_names.index(by)]
        if not self.problem.task.symmetric:
            low, high = (significant(one, 3) for one in np.quantile(values, ENDS))
            return (low, high) if low < high else (low, low + 1.0)
        far = significant(float(np.quantile(np.abs(values), ENDS[1])), 3) or 1.0
        return (-far, 0.0, far)

    def _around(self, numbers: Numbers, action: str, *, fed: bool) -> dict[str, Any]:
        """Return the bias and what is fed forward; at usual values the bias is the action at rest."""
        task, a = self.problem.task, self._actions.index(action)
        table: dict[str, Any] = {}
        middle = 0.0
        if fed:
            gains = {}
            for variable in self._fed:
                spread, usual = self._spread(variable)
                most = float(np.ptp(task.action_limits[a])) / spread
                gains[str(variable)] = numbers.level(0.0, -most, most)
                middle += gains[str(variable)] * usual
            table["feedforward"] = gains
        if len(self.rest):
            low, high = task.action_limits[a]
            around = numbers.place(float(self.rest[a]), low, high)
            table["bias"] = significant(around - middle, DIGITS)
        return table

    def _spread(self, variable: Variable) -> tuple[float, float]:
        """Return the standard deviation and the mean of a variable in the log."""
        task, batch = self.problem.task, self.problem.batch
        if variable.part == "setpoint" and batch.setpoints is not None:
            values = batch.setpoints[:, [*task.logged_setpoints].index(variable.name)]
        else:
            values = batch.states[:, task.state_names.index(variable.name)]
        return float(np.std(values)) or 1.0, 0.0 if task.symmetric else float(np.mean(values))


def _times(gain: Any, factor: float) -> Any:
    if isinstance(gain, tuple):
        return tuple(significant(one * factor, DIGITS) for one in gain)
    return significant(gain * factor, DIGITS)


# The search.


class StructureSearch:
    """A descent for each structure, one after the other; each round is one generation."""

    def __init__(self, ground: Ground, *, rounds: int, starts: int, rng: np.random.Generator) -> None:
        self.problem, self.rounds, self.starts = ground.problem, rounds, starts
        self.structures = list(ground.structures())
        self.descents: list[Descent] = []
        """one for each structure that was begun"""
        self._rng = rng

    @property
    def done(self) -> bool:
        """True if all descents have run all their rounds."""
        return len(self.descents) == len(self.structures) and self.descents[-1].generation >= self.rounds

    @property
    def best(self) -> float:
        """The lowest penalty of all that was found on the whole sample."""
        return min((one.best[1] for one in self.descents if one.generation > self._coarse), default=math.inf)

    @property
    def _coarse(self) -> int:
        return self.rounds // 2

    def advance(self) -> None:
        """Run one generation of a descent; begin the next one where it is done."""
        if not self.descents or self.descents[-1].generation >= self.rounds:
            self._begin(self.structures[len(self.descents)])
        structure, descent = self.structures[len(self.descents) - 1], self.descents[-1]
        coarse = descent.generation < self._coarse
        if descent.generation == self._coarse:
            (cost,) = self._costs(structure, descent.best[0][None], coarse=False)
            descent.revalue(float(cost))
        asked = descent.ask()
        if not descent.generation:
            asked[0] = descent.best_position  # the table's own numbers
            descent.asked[0] = descent.mean
        descent.tell(self._costs(structure, asked, coarse=coarse))

    def _begin(self, structure: Structure) -> Descent:
        """Begin the descent of the next structure."""
        start, bounds = structure.box
        self.descents.append(Descent(bounds, start, CMA(candidates=CANDIDATES), rng=self._rng))
        return self.descents[-1]

    def _costs(self, structure: Structure, vectors: Floats, *, coarse: bool) -> Floats:
        problem = self.problem
        population = [structure.controller(vector) for vector in vectors]
        policies = encode(population, problem.task, history=problem.history, dtype=np.float32)
        starts, members = (max(1, self.starts // COARSE), 1) if coarse else (self.starts, None)
        return problem.penalties(policies, starts=starts, members=members)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the best of each structure that was begun."""
        for structure, descent in zip(self.structures, self.descents, strict=False):
            vector, cost = descent.best
            yield Candidate(structure.controller(vector).for_task(self.problem.task), cost)

    def state(self) -> State:
        """Return the state from which `restore` goes on."""
        return {"descents": [descent.state() for descent in self.descents]}

    def restore(self, state: State) -> None:
        """Go on from the state of an earlier search."""
        self.descents = []
        for structure, part in zip(self.structures, state["descents"], strict=False):
            self._begin(structure).restore(part)
