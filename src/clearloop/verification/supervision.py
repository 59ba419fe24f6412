"""The guard in plain Python: the twin of `exports/guard.py`, and test vectors with broken sensors and modes.

It says step by step what a guarded block does, and shares no statement with the exports. The law inside is
the routine that `bounds.py` runs with error bounds; `verify` compares the law with the controller itself.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clearloop.controllers import Controller
from clearloop.controllers.routine import Input, Output, Ring, Routine
from clearloop.exports.guard import HOLD_STEPS, LONGEST_COUNT, STATUS
from clearloop.exports.printer import plain_name
from clearloop.exports.safety import before_start, forgets, integrals, safe_actions
from clearloop.exports.spans import Precision
from clearloop.expression import Variable
from clearloop.expression.nodes import READ_LIMIT
from clearloop.verification.bounds import Arithmetic, Inputs, Shadow
from clearloop.verification.vectors import TOLERANCES, Episode, Expectation


@dataclass
class _Sensor:
    """What the guard remembers of an input."""

    accepted: float = 0.0
    age: int = 0
    before: float = math.inf
    still: int = 0


@dataclass
class _Actuator:
    """What the guard remembers of an action."""

    last: float
    offset: float = 0.0


@dataclass(frozen=True)
class Answer:
    """The answer of a guarded block in one step.

    Attributes:
        actions: The actions, in the order of the outputs.
        status: The status word.
        steps: The counter of steps.
        bound: The largest error that a correct export may have in an action, so far in this episode.
        decided: Whether every decision is clear; if not, rounding decides one.
    """

    actions: tuple[float, ...]
    status: int
    steps: int
    bound: float
    decided: bool


@dataclass
class Supervisor:
    """A guarded block in plain Python.

    Args:
        controller: The controller, with its limits and checks.
        law: The routine of its law.
        precision: The precision of the export.
        checks: Whether inputs are checked.
        options: The modes of the block (see `exports/guard.py`).
    """

    controller: Controller
    law: Routine
    precision: Precision
    checks: bool = True
    options: frozenset[str] = frozenset()
    exact: bool = False
    _sensors: dict[Variable, _Sensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shadow = Shadow(self.law, Arithmetic(self.precision, self.exact))
        safe = safe_actions(self.controller)
        self._safe = [safe[one.action.name] for one in self.law.outputs]
        names = [one.action.name for one in self.law.outputs]
        self._actuators = [_Actuator(before_start(self.controller, n, safe[n])) for n in names]
        self._sensors = {one.variable: _Sensor() for one in self.law.inputs}
        self._held = self._steps = 0
        self._apart = self._acted = False
        self._bound, self._decided, self._clear = 0.0, True, True
        self._memory_is_endless = self.checks and not forgets(self.law)
        modes = self.options & {"manual", "tracking", "enable"}
        self._seamless = bool(modes) or self._memory_is_endless
        self.wrong: dict[Variable, set[str]] = {}
        """what is wrong with inputs in the latest step, by names of `STATUS`"""

    def step(self, inputs: Inputs, given: Mapping[str, float]) -> Answer:
        """Run one step.

        Args:
            inputs: The inputs of the law, which may be NaN or infinite.
            given: The other inputs of the block by their roles, such as "manual" or "valid theta".
        """
        signs: set[str] = set()
        self.wrong = {}
        self._clear = True  # whether no rounding decides about the status
        valid = [self._test(one, inputs, given, signs) for one in self.law.inputs if self.checks]
        good = all(valid)
        self._held = 0 if good else min(self._held + 1, LONGEST_COUNT)
        late = self._held > given.get("hold_steps", HOLD_STEPS)
        enabled = bool(given.get("enable", 1.0))
        manual, track = bool(given.get("manual", 0.0)), bool(given.get("track", 0.0))
        following, waiting = integrals(self.law) if manual or track else ({}, [])
        before = {ring.name: self._shadow.latest(ring.name) for ring in waiting}
        law = self._run_law(inputs, act=good and enabled)
        for ring_name, value in before.items():
            self._shadow.correct(ring_name, value)
        actions = []
        for index, output in enumerate(self.law.outputs):
            value = self._free(index, law, given, follows=law is not None and not (manual or track))
            if law is None:
                value = self._safe[index] if late else self._actuators[index].last
            name = output.action.name
            if track:
                value = self._by_hand(given[f"track {name}"], index, output)
            if manual:
                value = self._by_hand(given[f"manual {name}"], index, output)
            if not enabled:
                value = self._safe[index]
            value = self._slowed(value, index, output, given, signs)
            actions.append(self._finished(value, index, output, signs))
            if law is not None and (ring := following.get(output.action)):
                self._follow(ring, actions[-1] - law[index])
        self._apart = manual or track or not enabled or (self._memory_is_endless and not good)
        self._acted = True
        free = not (manual or track)
        signs |= {"held"} if not good and not late and enabled and free else set()
        signs |= {"safe"} if (not good and late and free) or not enabled else set()
        signs |= {"manual"} if manual else set()
        signs |= {"tracking"} if track else set()
        signs |= {"disabled"} if not enabled else set()
        self._steps = 0 if self._steps >= LONGEST_COUNT - 1 else self._steps + 1
        clear = self._decided and self._clear
        status = sum(STATUS[sign][0] for sign in signs)
        return Answer(tuple(actions), status, self._steps, self._bound, clear)

    def _test(self, one: Input, inputs: Inputs, given: Mapping[str, float], signs: set[str]) -> bool:
        """Return whether an input is valid, and add what is wrong with it to the signs."""
        x, variable, sensor = inputs[one.variable], one.variable, self._sensors[one.variable]
        check = self.controller.check_of(variable)
        low, high = check.range or (-READ_LIMIT, READ_LIMIT)
        dt = self.controller.dt or 1.0
        marked, inside = not given.get(f"valid {plain_name(variable)}", 1.0), low <= x <= high
        steady = moving = True
        if check.gradient is not None:
            change, room = abs(x - sensor.accepted) if inside else 0.0, check.gradient * dt * sensor.age
            steady = sensor.age == 0 or change <= room
            rounding = 8 * self.precision.unit * (abs(x) + abs(sensor.accepted) + room)
            if sensor.age and inside and self.precision.name == "single" and abs(change - room) <= rounding:
                self._decided = False
            if inside and steady and not marked:
                sensor.accepted, sensor.age = x, 1
            elif sensor.age:
                sensor.age = min(sensor.age + 1, LONGEST_COUNT)
        if check.frozen is not None:
            sensor.still = min(sensor.still + 1, LONGEST_COUNT) if inside and x == sensor.before else 0
            sensor.before = x if inside else sensor.before
            moving = sensor.still <= max(math.floor(check.frozen / dt + 1e-9), 1)
        found = {"outside": not inside, "gradient": not steady, "frozen": not moving, "marked": marked}
        if any(found.values()):
            self.wrong[variable] = {sign for sign, wrong in found.items() if wrong}
            signs |= self.wrong[variable]
        return variable not in self.wrong

    def _run_law(self, inputs: Inputs, *, act: bool) -> list[float] | None:
        """Return what the law gives; None if it does not run, and then its memory stays as it is."""
        if not act:
            self._shadow.restart()
            return None
        found = self._shadow.step(inputs)
        answers = [found[one.action] for one in self.law.outputs]
        for answer, output in zip(answers, self.law.outputs, strict=True):
            self._bound = max(self._bound, 4 * answer.bound)
            for limit in output.limits or ():
                near = abs(answer.value - limit) <= answer.bound
                rounding = self.precision.unit * abs(limit)
                if near and (answer.value != limit or answer.bound > 2 * rounding):
                    self._clear = False
        return [answer.value for answer in answers]

    def _free(
        self,
        index: int,
        law: list[float] | None,
        given: Mapping[str, float],
        *,
        follows: bool,
    ) -> float:
        """Return the law's action with the offset that spares it a jump after somebody else's action."""
        if law is None:
            return 0.0
        if not self._seamless:
            return law[index]
        actuator, dt = self._actuators[index], self.controller.dt or 1.0
        if follows and self._apart:
            actuator.offset = actuator.last - law[index]
        elif follows:
            time = min(max(given["transfer_time"], 0.0), READ_LIMIT)
            actuator.offset *= time / (time + dt)
        if not self.exact:  # a large law and its offset may cancel
            sizes = abs(law[index]) + abs(actuator.offset) + abs(actuator.last)
            self._bound = max(self._bound, 4 * self.precision.unit * sizes)
        output, led = self.law.outputs[index], law[index] + actuator.offset
        if follows and actuator.offset and self._bound:  # their sum may miss a limit by a rounding
            near = [abs(led - limit) <= self._bound for limit in output.limits or ()]
            self._clear = self._clear and not any(near)
        most = self.controller.change_of(output.action.name)
        return led if most is None else min(max(led, actuator.last - most), actuator.last + most)

    def _by_hand(self, wish: float, index: int, output: Output) -> float:
        low, high = output.limits or (-READ_LIMIT, READ_LIMIT)
        return self._actuators[index].last if math.isnan(wish) else min(max(wish, low), high)

    def _slowed(
        self, value: float, index: int, output: Output, given: Mapping[str, float], signs: set[str]
    ) -> float:
        """Apply the deadband and the rate limit of an action."""
        name, last = output.action.name, self._actuators[index].last
        low, high = output.limits or (-math.inf, math.inf)
        if self.options & {"action-deadband", "rate-limit"}:
            value = min(max(value, low), high)
        if "action-deadband" in self.options and self._acted:
            band = given[f"deadband {name}"]
            rounding = self._bound + 8 * self.precision.unit * (abs(value) + abs(last))
            if band > 0 and abs(abs(value - last) - band) <= rounding:
                self._decided = False
            value = last if abs(value - last) < band else value
        if "rate-limit" in self.options and self._acted:
            step = min(max(given[f"rate {name}"], 0.0), READ_LIMIT) * (self.controller.dt or 1.0)
            slow = min(max(value, last - step), last + step) if step > 0 else value
            rounding = self._bound + 8 * self.precision.unit * (abs(value) + abs(last) + step)
            if step > 0 and abs(abs(value - last) - step) <= rounding:
                self._clear = False
            signs |= {"rate"} if slow != value else set()
            value = slow
        return value

    def _finished(self, value: float, index: int, output: Output, signs: set[str]) -> float:
        name = output.action.name
        if output.limits:
            low, high = output.limits
            for limit in (low, high):
                rounding = self._bound + 8 * self.precision.unit * abs(limit)
                if value != limit and abs(value - limit) <= rounding:
                    self._decided = self._decided and self.exact
            value = self.controller.range_of(name).limited(value)
            signs |= {"low"} if value <= low else set()
            signs |= {"high"} if value >= high else set()
        self._remember(index, output, value)
        return value

    def _follow(self, ring: Ring, missing: float) -> None:
        """Let an integral give the law what it lacks of the action that a hand gave."""
        assert ring.integral is not None  # noqa: S101 - or it would not follow
        more = missing / ring.integral.gain
        value = self._shadow.latest(ring.name) + more
        rounding = self.precision.unit * (abs(value) + 4 * abs(more))
        bound = 0.0 if self.exact else self._bound / abs(ring.integral.gain) + rounding
        self._shadow.correct(ring.name, value, bound)

    def applied(self, actions: Mapping[str, float]) -> None:
        """Let these be the actions of the latest step, because somebody else chose them."""
        for index, output in enumerate(self.law.outputs):
            self._remember(index, output, actions[output.action.name])

    def _remember(self, index: int, output: Output, value: float) -> None:
        self._actuators[index].last = value
        start = self.controller.starts.get(output.action.name, 0.0)
        self._shadow.correct(output.action, value - start, 0.0 if self.exact else self._bound)


# Test vectors for guarded blocks: what sensors, operators and engineers do.

_NAMES = ("nan", "inf", "-inf", "huge", "outside", "frozen", "spike", "marked")
_BROKEN = 0.08  # the share of steps in which something breaks
_LENGTHS = (1, 2, 5, HOLD_STEPS + 3)


def broken(
    routine: Routine, controller: Controller, precision: Precision, *, rng: np.random.Generator, count: int
) -> list[Episode]:
    """Return episodes in which sensors break, and in which people change modes.

    Args:
        routine: The guarded routine.
        controller: The controller, with its checks.
        precision: The precision of the export.
        rng: The source of randomness.
        count: The number of episodes.
    """
    return [list(_episode(routine, controller, precision, rng)) for _ in range(count)]


def _episode(
    routine: Routine, controller: Controller, precision: Precision, rng: np.random.Generator
) -> Iterator[dict[Variable, float]]:
    law = routine.law
    size = 10 ** rng.uniform(-2, 1)
    calm = {one.variable: float(rng.normal() * size) for one in law.inputs}
    others = [one for one in routine.inputs if one.role]
    modes = {one.variable: one.default or 0.0 for one in others}
    fault, victim, left = "", law.inputs[0].variable if law.inputs else Variable("none"), 0
    for _ in range(int(rng.integers(20, 45))):
        for one in law.inputs:
            calm[one.variable] = _moved(one, calm[one.variable], controller, size, rng)
        if left == 0 and law.inputs and rng.random() < _BROKEN * 2:
            fault, left = str(rng.choice(_NAMES)), int(rng.choice(_LENGTHS))
            victim = law.inputs[rng.integers(len(law.inputs))].variable
            held = calm[victim]
        step = dict(calm)
        step.update({one.variable: _setting(one, modes, size, controller, rng) for one in others})
        if left:
            left -= 1
            if fault == "marked":
                flags = [one.variable for one in others if one.role.startswith("valid ")]
                step.update(dict.fromkeys(flags[:1], 0.0))
            else:
                step[victim] = _wrong(fault, victim, held, controller, size)
        yield {name: value if math.isnan(value) or math.isinf(value) else precision.rounded(value)
               for name, value in step.items()}  # fmt: skip


def _moved(one: Input, value: float, controller: Controller, size: float, rng: np.random.Generator) -> float:
    check = controller.check_of(one.variable)
    most = size if check.gradient is None else check.gradient * (controller.dt or 1.0)
    value += float(rng.uniform(-0.9, 0.9)) * most
    low, high = check.range or (-READ_LIMIT, READ_LIMIT)
    return max(min(max(value, low), high), one.low)


def _setting(
    one: Input, modes: dict[Variable, float], size: float, controller: Controller, rng: np.random.Generator
) -> float:
    """Return the value of a mode or of a parameter, which mostly stays for a while."""
    kind = one.role.split(" ")[0]
    if kind == "valid":
        return 1.0
    if one.flag:
        if rng.random() < _BROKEN:
            modes[one.variable] = 1.0 - modes[one.variable]
    elif kind in ("manual", "track"):
        modes[one.variable] = float(
            rng.choice([rng.normal() * 6, math.nan, 1e3, -1e3], p=[0.85, 0.05, 0.05, 0.05])
        )
    elif rng.random() < _BROKEN / 2:
        scale = {"hold_steps": HOLD_STEPS, "transfer_time": 10 * (controller.dt or 1.0)}.get(kind, size)
        modes[one.variable] = float(round(rng.uniform(0, 2) * scale, 2))
    return modes[one.variable]


def _wrong(fault: str, victim: Variable, held: float, controller: Controller, size: float) -> float:
    check = controller.check_of(victim)
    match fault:
        case "nan":
            return math.nan
        case "inf" | "-inf":
            return float(fault)
        case "huge":
            return 1e30
        case "outside":
            return (check.range or (0.0, 2e12))[1] * 1.5 + 1.0
        case "frozen":
            return held
        case _:
            return held + 100 * size + (check.gradient or 0.0)


def expect_guarded(
    controller: Controller,
    routine: Routine,
    episodes: Sequence[Episode],
    precision: Precision,
    options: frozenset[str] = frozenset(),
) -> Expectation:
    """Run the guard in plain Python on test vectors.

    Args:
        controller: The controller.
        routine: Its routine with the guard.
        episodes: The values of all inputs of the routine.
        precision: The precision of the export.
        options: The modes of the routine.

    Returns:
        The expectation; after the actions come the status and the counter of steps.
    """
    law, rows, compared = routine.law, [], []
    roles = {one.variable: one.role for one in routine.inputs if one.role}
    ranges = [one.limits[1] - one.limits[0] if one.limits else 0.0 for one in law.outputs]
    tolerance = TOLERANCES[precision.name]
    exact = precision.name == "double" and controller.exact
    for episode in episodes:
        twin = Supervisor(controller, law, precision, bool(routine.reports), options, exact)
        for step in episode:
            answer = twin.step(step, {role: step[variable] for variable, role in roles.items()})
            rows.append([*answer.actions, float(answer.status), float(answer.steps)])
            sizes = [size or max(abs(a), 1.0) for a, size in zip(answer.actions, ranges, strict=True)]
            compared.append(answer.decided and answer.bound <= tolerance * min(sizes, default=1.0))
    count = len(law.outputs) + (2 if routine.reports else 0)
    values = np.array(rows, dtype=float).reshape(len(rows), len(law.outputs) + 2)[:, :count]
    width = np.maximum(np.abs(values), 1.0)
    for column, size in enumerate(ranges):
        if size:
            width[:, column] = size
    width[:, len(ranges) :] = 1.0
    return Expectation(episodes, values, width, np.array(compared, dtype=bool), tolerance)
