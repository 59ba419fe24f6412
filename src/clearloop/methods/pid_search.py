"""The search for PID gains with the least ∫|e| dt after a step of the load, within limits on several plants.

Ti, Td and Tf are searched by Nelder and Mead's simplex. For each of their values, Kp is the largest that
keeps the limits: on the plant and, a little wider, on those that differ from it by its errors, the largest
sensitivity Ms; and on the plant, what noise of the measurement moves the action by. Both come from frequency
responses, for many Kp at once. The loop may cross over only where the plant is known well enough.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError, check_range
from clearloop.methods.pid_rules import FILTER, Bench, Gains, Process

WIDER = 1.1  # the factor by which the limit on Ms is wider on other plants
NAMES = ("kp", "ti", "td", "tf")
REACH = 100.0  # the factor by which Kp may differ from that of the first start
ROUNDS = (24, 8, 8, 8)  # values of Kp that are tried, ever closer to the largest that keeps the limits
FAIL = 1e3  # the cost of gains that keep no limits is above this
LEAST_FILTER = 0.05  # steps
DOUBT = 0.3  # of the plant's gain at the crossover: more than this, and the log does not support the numbers
SPARSE = 2  # of so many frequencies, one is looked at where other plants are tried
BEST = 3  # starts from which the simplex begins


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What new numbers must keep.

    Attributes:
        ms: The largest sensitivity.
        noise: The most that noise of the measurement may move the action (`Bench.noise`).
        only: The numbers that may change: kp, ti, td and tf.
        most_change: The factor by which each number may change; None: any.
        time_constant: Of the closed loop in seconds, for SIMC and lambda; None: by the rules.
    """

    ms: float = 1.6
    noise: float = math.inf
    only: tuple[str, ...] = NAMES
    most_change: float | None = None
    time_constant: float | None = None

    def __post_init__(self) -> None:
        check_range(self, "ms", 1.05, 10)
        for name in self.only:
            if name not in NAMES:
                raise ClearloopError(f"--only {name}: expected some of {', '.join(NAMES)}")

    def range_of(self, name: str, present: Gains | None) -> tuple[float, float]:
        """Return the least and the largest size that a number may have."""
        now = 0.0 if present is None else abs(getattr(present, name))
        if present is not None and name not in self.only:
            return now, now
        if present is not None and self.most_change is not None and now:
            return now / self.most_change, now * self.most_change
        return 0.0, math.inf


def search(
    benches: Sequence[Bench],
    starts: Sequence[Gains],
    limits: Limits,
    letters: str,
    present: Gains | None,
    doubts: Floats | None = None,
) -> Gains | None:
    """Find the gains with the least ∫|e| dt after a step of the load, within limits on all plants.

    Args:
        benches: The plant, then those that differ from it by its errors.
        starts: Gains to start from.
        limits: What must be kept.
        letters: PI or PID.
        present: The gains now, which `limits` may hold fast.
        doubts: How far the plant is unknown at the frequencies of the first bench, if that counts.

    Returns:
        The gains, or None if none keep the limits.
    """
    from scipy.optimize import minimize

    usual = [one for one in starts if one.ti and math.isfinite(one.kp) and one.kp * starts[0].kp > 0]
    if not usual:
        return None
    trial = Trial(benches, limits, usual[0], present, doubts)
    tried = [x for one in usual for x in _vectors(one, letters)]
    best: tuple[float, Floats] | None = None
    for start in sorted(tried, key=trial.cost)[:BEST]:
        x = start
        for size in (0.5, 0.15):
            simplex = np.vstack([x, *(x + size * row for row in np.eye(len(x)))])
            found = minimize(
                trial.cost, x, method="Nelder-Mead",
                options={"initial_simplex": simplex, "maxfev": 60 * len(x), "xatol": 5e-3, "fatol": 2e-4},
            )  # fmt: skip
            x = found.x
        if best is None or found.fun < best[0]:
            best = float(found.fun), x
    return None if best is None or best[0] >= FAIL else trial.gains(best[1])


def _vectors(gains: Gains, letters: str) -> list[Floats]:
    """Return logarithms of Ti, Td and Tf to start from, about the gains."""
    if "D" not in letters:
        return [np.log([gains.ti * share]) for share in (0.3, 1.0)]
    lead = gains.td or 0.25 * gains.ti
    late = [gains.tf or lead / FILTER, lead, 0.03 * lead]
    table = product((0.5, 1.0), (0.3, 1.0), late)
    return [np.log([a * gains.ti, b * lead, c]) for a, b, c in table]


class Trial:
    """Gains on several plants, with Kp as large as the limits allow."""

    def __init__(
        self,
        benches: Sequence[Bench],
        limits: Limits,
        first: Gains,
        present: Gains | None,
        doubts: Floats | None = None,
    ) -> None:
        self.benches, self.limits, self.present, self.doubts = benches, limits, present, doubts
        self.sign = math.copysign(1.0, first.kp)
        self.usual = abs(first.kp)
        self.others = np.array([one.process.response(benches[0].z[::SPARSE]) for one in benches[1:]])
        angles = np.angle(benches[0].z)
        self.weights = np.gradient(angles) / math.pi

    def cost(self, x: Floats) -> float:
        """Return log ∫|e| dt on the plant; where no Kp keeps the limits, how far they are missed."""
        return self._try(x)[0]

    def gains(self, x: Floats) -> Gains:
        """Return the gains of a vector."""
        return self._try(x)[1]

    def _try(self, x: Floats) -> tuple[float, Gains]:
        first = self.benches[0]
        table = dict(zip(NAMES[1:], [*np.exp(np.clip(x, -50, 50)), 0.0, 0.0], strict=False))
        if table["td"]:
            table["tf"] = max(table["tf"], LEAST_FILTER * first.dt)
        for name in table:
            low, high = self.limits.range_of(name, self.present)
            table[name] = min(max(table[name], low), high)
        b = 1.0 if self.present is None else self.present.b
        one = Gains(self.sign, table["ti"], table["td"], table["tf"], b)
        num, den, _ = first.closed(one)
        law = Process(den, num).response(first.z)
        kp, missed = self._largest(law, one)
        found = one._replace(kp=self.sign * kp)
        if missed > 0:
            return FAIL * (1 + min(missed, 1e6)), found
        return math.log(max(first.load(found), 1e-300)), found

    def _largest(self, law: Floats, one: Gains) -> tuple[float, float]:
        """Return the largest Kp that keeps the limits, or the one that misses them least, and by how much.

        Where the gain of the loop is far from 1 at all frequencies, Ms is small although the loop is not
        stable. So each range of Kp that keeps the limits is asked whether it is.
        """
        least, most = self.limits.range_of("kp", self.present)
        low, high = max(self.usual / REACH, least), min(self.usual * REACH, most)
        tried = np.geomspace(low, high, ROUNDS[0]) if low < high else np.array([least])
        missed = self._missed(law, tried)
        kept = np.append(missed <= 0, False)
        ends = np.flatnonzero(kept[:-1] & ~kept[1:])[::-1]
        at = next((int(k) for k in ends if self._stable(one, tried[k])), None)
        if at is None:
            at = int(np.argmin(missed))
            return float(tried[at]), max(float(missed[at]), 1.0 if ends.size else 1e-9)
        for count in ROUNDS[1:]:
            if at == len(tried) - 1:
                break
            tried = np.geomspace(tried[at], tried[at + 1], count)
            fine = self._missed(law, tried) <= 0
            fine[0] = True
            at = int(np.argmin(np.append(fine, False))) - 1
        return float(tried[at]), 0.0

    def _stable(self, one: Gains, kp: float) -> bool:
        return math.isfinite(self.benches[0].sensitivity(one._replace(kp=self.sign * kp)))

    def _missed(self, law: Floats, gains: Floats) -> Floats:
        """Return by how much gains [n] miss the limits; at most 0 where they keep them."""
        back = np.abs(1 + gains[:, None] * (self.benches[0].plant * law))
        over = 1 / np.maximum(back.min(axis=1), 1e-9) / self.limits.ms - 1
        if len(self.others):
            loop = gains[:, None, None] * (self.others * law[::SPARSE])
            worst = 1 / np.maximum(np.abs(1 + loop).min(axis=(1, 2)), 1e-9)
            over = np.maximum(over, worst / (WIDER * self.limits.ms) - 1)
        if self.doubts is not None and self.doubts.max() > DOUBT:
            above = gains[:, None] * np.abs(self.benches[0].plant * law) >= 1
            last = above.shape[1] - 1 - np.argmax(above[:, ::-1], axis=1)
            over = np.maximum(over, np.where(above.any(axis=1), self.doubts[last] / DOUBT - 1, 0.0))
        if math.isfinite(self.limits.noise):
            moved = np.sqrt(np.sum((gains[:, None] * np.abs(law) / back) ** 2 * self.weights, axis=1))
            over = np.maximum(over, moved / self.limits.noise - 1)
        return np.asarray(over)
