"""`examine` judges before the search whether data and model can support a controller, and why not."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.data import Batch, check
from clearloop.data.excitation import goals
from clearloop.data.findings import Finding, Report
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.numbers import amount, rough_percent
from clearloop.surrogate.quality import Predictor, errors_of, segments
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Repetition, Surrogate
from clearloop.task import Task

NO_BETTER = 0.95  # share of the error of "nothing changes" above which a model predicts nothing
_LINEAR = 1.5  # ratio to the error of a linear model above which the networks have not learned enough
MOSTLY_FAILING = 0.5  # share of failing steps above which a model is refused
_UNEXPLAINED = 0.95  # share of the variance of a learned reward above which it is unpredictable
_PARTS, WEAK = 5, 3.0  # quantiles of a state's range; ratio to the usual error that makes a part weak
_FEWEST = 30  # held-out steps in a part
FEWEST_REPEATING = 0.4  # share of the members up to which too few repeat the log
FAR_OFF = 0.25  # share of the log's cost by which replays may be off without a warning
_CHANCE = 2.0  # standard errors of what replays are off by, within which they may be right


def examine(task: Task, batch: Batch, surrogate: Surrogate) -> Report:
    """Report all findings on the batch and on the surrogate. A problem among them forbids a search."""
    examined = check(task, batch)
    return Report.of(examined.summary, [*examined.findings, *examine_model(task, batch, surrogate)])


def examine_model(task: Task, batch: Batch, surrogate: Surrogate) -> list[Finding]:
    """Return the findings on a surrogate, from the held-out part of the batch that it was learned from."""
    training, held_out = surrogate.split(batch)
    steps = Steps.of(task, held_out)
    if steps.failing.mean() > MOSTLY_FAILING:
        return [_beyond_limits(float(steps.failing.mean()))]
    found = compare(surrogate, training, held_out)
    return [
        *_predictions(task, found, _repeats(surrogate.repetition)),
        *_regions(task, surrogate, steps),
        *_reward(task, surrogate, steps),
        *_repetition(surrogate),
    ]


def _beyond_limits(share: float) -> Finding:
    what = (
        f"{rough_percent(share)} of the steps fail by the task's own condition: check the units of the log "
        "and the limits in the task, or log while the plant does not fail"
    )
    return Finding("problem", "beyond-limits", what, {"share": share})


# A model is compared, in replays of the log, with the prediction "nothing changes" and with a linear model.

AHEAD = (1, 3, 10, 30, 100)  # steps that are predicted, up to the horizon and the length of logged episodes
FEWEST_COMPARED, _MOST = 5, 2000  # fewest and most replays of a length


@dataclass(frozen=True)
class LinearPredictor:
    """A model in which the change of each state is a linear function of the window."""

    task: Task
    gains: Floats
    """[H (S + A) + 1, S] gains of the window and, last, the constant"""

    @classmethod
    def fit(cls, task: Task, steps: Steps) -> "LinearPredictor":
        """Fit the gains by least squares to the steps that do not fail."""
        kept = steps[~steps.failing] if not steps.failing.all() else steps
        columns = np.column_stack([kept.window, np.ones(len(kept))])
        return cls(task, np.asarray(np.linalg.lstsq(columns, kept.change, rcond=1e-10)[0], np.float64))

    def predict(
        self,
        window: Floats,
        member: int,  # noqa: ARG002
        *,
        after: Floats | None = None,
        setpoints: Floats | None = None,  # noqa: ARG002
    ) -> Floats:
        """Predict the next states as `Predictor` says; derived states are predicted like others."""
        changes = np.column_stack([window, np.ones(len(window))]) @ self.gains
        states = np.clip(window[:, : changes.shape[1]] + changes, -STATE_LIMIT, STATE_LIMIT)
        external = [self.task.state_names.index(name) for name in self.task.scope.external]
        if after is not None:
            states[:, external] = after[:, external]
        return np.asarray(states)


@dataclass(frozen=True, eq=False)
class ReplayErrors:
    """Root mean square errors of replays, in the units of the states; stretches at rest hardly count."""

    ahead: tuple[int, ...]
    """numbers of steps that are predicted"""
    model: Floats
    """[steps, S] errors of the median member"""
    still: Floats
    """[steps, S] errors of the prediction that nothing changes"""
    linear: Floats
    """[steps, S] errors of a linear model"""


def compare(surrogate: Surrogate, training: Batch, held_out: Batch) -> ReplayErrors:
    """Replay held-out episodes on the surrogate, on a linear model, and with the guess of no change."""
    task = surrogate.task
    steps = Steps.of(task, held_out)
    episode = held_out.transitions().episode
    replays = {k: _replays(*segments(episode, steps, k), k) for k in AHEAD if k <= task.horizon}
    ahead = tuple(k for k, begins in replays.items() if k == 1 or len(begins) >= FEWEST_COMPARED)

    def sizes(predictor: Predictor, member: int) -> Floats:
        rows = [errors_of(predictor, member, task, steps, replays[k], k)[:, -1] for k in ahead]
        return np.array([np.sqrt(np.square(row).mean(axis=0)) for row in rows])

    members = np.stack([sizes(surrogate, member) for member in range(surrogate.members)])
    return ReplayErrors(
        ahead=ahead,
        model=np.median(members, axis=0),
        still=sizes(LinearPredictor(task, np.zeros((steps.window.shape[1] + 1, len(task.states)))), 0),
        linear=sizes(LinearPredictor.fit(task, Steps.of(task, training)), 0),
    )


def _replays(begins: Ints, lengths: Ints, steps: int) -> Ints:
    """Return where replays begin that last so many steps; if there are very many, return some of them."""
    whole = begins[lengths >= steps]
    return whole[:: 1 + len(whole) // _MOST]


def better(task: Task, found: ReplayErrors) -> list[float]:
    """Return each state's error as a share of the error of "nothing changes", at the best distance."""
    if not found.ahead:
        return [0.0] * len(task.states)
    shares = found.model / np.where(found.still > 0, found.still, np.inf)
    return [float(share) for share in shares.min(axis=0)]


def _repeats(found: Repetition | None) -> bool:
    """Tell whether models repeat the log: to a quarter of its cost or, in closed loop, but for chance.

    On its own, no model of an unstable or integrating plant predicts it for long. With the law that held the
    plant it must. What that leaves open is in the interval of each promise.
    """
    if found is None:
        return False
    return abs(found.off) <= max(FAR_OFF, _CHANCE * found.off_se if found.law else 0.0)


def _predictions(task: Task, found: ReplayErrors, repeated: bool) -> Iterator[Finding]:
    """Report states that are predicted badly; this is no problem if the log is repeated all the same."""
    wanted = goals(task)
    for j, (name, share) in enumerate(zip(task.state_names, better(task, found), strict=True)):
        unit = task.states[name].unit
        if name not in task.predicted:
            continue
        if share > NO_BETTER:
            what = (
                f"{name} cannot be predicted from this log: however far ahead, the model is no better than "
                f"the guess that nothing changes (error {amount(found.model[-1, j], unit)} against "
                f"{amount(found.still[-1, j], unit)} after {found.ahead[-1]} steps): set a longer history "
                f"than {task.history} in the task, log what {name} depends on, or log more episodes"
            )
            numbers = {"name": name, "share_of_still": share}
            serious = name in wanted and not repeated
            yield Finding("problem" if serious else "warning", "unpredictable", what, numbers)
        elif found.ahead:
            k = int(np.searchsorted(found.ahead, 10, side="right")) - 1
            ratio = float(found.model[k, j] / max(found.linear[k, j], 1e-300))
            if ratio > _LINEAR and found.model[k, j] > 0.1 * found.still[k, j]:
                what = (
                    f"{found.ahead[k]} steps ahead, the networks predict {name} worse than a linear model, "
                    f"with {ratio:.2g} times its error: there is too little data for networks; log more"
                )
                yield Finding("warning", "worse-than-linear", what, {"name": name, "ratio": ratio})


def _regions(task: Task, surrogate: Surrogate, steps: Steps) -> Iterator[Finding]:
    """Report, for each state, the range of another state in which one-step predictions are much worse."""
    calm = steps[~steps.failing]
    predicted = np.mean([surrogate.predict(calm.window, m) for m in range(surrogate.members)], axis=0)
    errors = np.square(predicted - calm.next)
    for name in task.predicted:
        j = task.state_names.index(name)
        worst = max(
            ((*_weakest(errors[:, j], calm.window[:, i]), other) for i, other in enumerate(task.state_names)),
            key=lambda found: found[0],
        )
        factor, low, high, where = worst
        if factor > WEAK:
            what = (
                f"the prediction error of {name} is {factor:.2g} times the usual one where {where} is from "
                f"{low:.3g} to {high:.3g}"
            )
            yield Finding(
                "note", "weak-region", what, {"name": name, "where": where, "low": low, "high": high}
            )


def _weakest(squares: Floats, values: Floats) -> tuple[float, float, float]:
    """Return the ratio of the largest error of a part to the usual one, and the limits of this part."""
    edges = np.quantile(values, np.linspace(0, 1, _PARTS + 1))
    if len(values) < _FEWEST * _PARTS or np.any(np.diff(edges) <= 0):
        return 0.0, 0.0, 0.0
    part = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, _PARTS - 1)
    sizes = np.sqrt([squares[part == k].mean() for k in range(_PARTS)])
    k, usual = int(np.argmax(sizes)), float(np.median(sizes))
    return float(sizes[k]) / usual if usual else 0.0, float(edges[k]), float(edges[k + 1])


def _reward(task: Task, surrogate: Surrogate, steps: Steps) -> Iterator[Finding]:
    """Report a reward that is learned as a value but does not depend on states and actions."""
    if task.reward_expression is not None or len(np.unique(steps.reward)) <= _PARTS:
        return
    rewards, _ = surrogate.judge(steps.frame, 0)
    left = float(np.square(rewards - steps.reward).mean() / max(float(steps.reward.var()), 1e-300))
    if left > _UNEXPLAINED:
        what = (
            "the reward cannot be predicted from states and actions (only "
            f"{rough_percent(max(0.0, 1 - left), 2)} of its variance): log what it depends on, or "
            "write it as an expression in the task"
        )
        yield Finding("problem", "unpredictable-reward", what, {"unexplained": left})


def _repetition(surrogate: Surrogate) -> Iterator[Finding]:
    """Report models that do not repeat the log in closed loop."""
    found = surrogate.repetition
    if found is None:
        return
    able, members = sum(found.repeats), len(found.repeats)
    numbers = {"members": members, "repeating": able, "bias": found.off}
    if able <= members * FEWEST_REPEATING:
        what = (
            f"only {able} of {members} models repeat the log; the others run off, so no promise can be made: "
            "set a longer history in the task, log what the plant depends on, or log more episodes"
        )
        yield Finding("problem", "does-not-repeat", what, numbers)
    elif abs(found.off) > FAR_OFF:
        more = "more" if found.off > 0 else "less"
        what = (
            f"when the models repeat the log, they cost {rough_percent(abs(found.off))} {more} than the log "
            "did: promises are as far off"
        )
        yield Finding("warning", "repeats-badly", what, numbers)
