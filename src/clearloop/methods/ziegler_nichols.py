"""Ziegler and Nichols' second method (1942; sec. 3.2 of the paper), as an engineer would do it, on a model.

A loop under test is proportional only. Its gain is raised, by half octaves and in both signs, from where it
does nothing, and each time the state is let go from a small deviation. A stable plant's oscillation dies out
at first; where it no longer does, between two gains, the critical gain is found by bisection; if it grows
too fast to be seen there, as in plants of first order, or takes the action to its limits, the critical gain
is the nearest below. An unstable
plant runs away at first, and from some gain on oscillates, perhaps never quite without growing: then the
critical gain is the one whose oscillation is nearest to sustained. An oscillation counts as long as the
action stays within its limits and the states where the model knows them, and only if that is the task's
horizon or longer.

Loops are closed one after the other, each with the gains of the table, and the others are tested with it in
place. Those that cannot hold the plant alone get their turn when others hold it; of several that can, the
fastest is closed first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from clearloop.controllers.pid import LONGEST_WINDOW, Loop
from clearloop.expression import significant
from clearloop.methods.trial import Laboratory, Trial

DIGITS = 6  # of a gain
RUNGS = range(-16, 25)  # half octaves, from the gain that answers a usual deviation with the whole action
OVER = 4  # rungs without an oscillation, after some with one, that end the climb
BISECTIONS = 3
BRACKET = 1.05  # times: what bisection leaves between a gain that oscillates and one that does not
NEAR = 1.0  # |log ratio|: what grows or dies by more than e in each period is not nearly sustained


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
            kp=significant(0.6 * self.gain, DIGITS),
            ki=significant(1.2 * self.gain / self.period, DIGITS),
            kd=significant(0.075 * self.gain * self.period, DIGITS),
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
    if best.distance > NEAR and not _is_bracketed(trials):
        return None, trials
    if best.distance > NEAR:
        best = max((trial for trial in trials if trial.oscillates), key=lambda trial: abs(trial.gain))
    return Critical(state, action, significant(best.gain, DIGITS), significant(best.period, DIGITS)), trials


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
