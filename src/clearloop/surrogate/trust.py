"""One verdict before the search, on data and model together: can a controller come from them, and why not?"""

from collections.abc import Iterator

import numpy as np

from clearloop.data import Batch, check
from clearloop.data.cells import Floats
from clearloop.data.excitation import goals
from clearloop.data.report import Finding, Report
from clearloop.surrogate.comparison import Comparison, better, compare
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Surrogate
from clearloop.task import Task

NO_BETTER = 0.95  # of the error of "nothing changes": a model with more predicts nothing
LINEAR = 1.5  # times the error of a linear model: a model with more has not learned enough
MOSTLY_FAILING = 0.5  # share of the steps
UNEXPLAINED = 0.95  # share of the variance of a learned reward
PARTS, WEAK = 5, 3.0  # of a state's range by quantiles; times the usual error in the worst of them
FEWEST = 30  # held-out steps in a part


def trust(task: Task, batch: Batch, surrogate: Surrogate) -> Report:
    """Everything that is known of both. A problem forbids to search."""
    examined = check(batch, task)
    return Report.of(examined.summary, [*examined.findings, *examine_model(task, batch, surrogate)])


def examine_model(task: Task, batch: Batch, surrogate: Surrogate) -> list[Finding]:
    """On what was held out of the batch that it was learned from."""
    training, held_out = surrogate.split(batch)
    steps = Steps.of(task, held_out)
    if steps.failing.mean() > MOSTLY_FAILING:
        return [_beyond_limits(float(steps.failing.mean()))]
    found = compare(surrogate, training, held_out)
    return [*_predictions(task, found), *_regions(task, surrogate, steps), *_reward(task, surrogate, steps)]


def _beyond_limits(share: float) -> Finding:
    what = (
        f"{100 * share:.3g} % of the steps fail by the task's own condition: check the units of the log and "
        "the limits in the task, or log where the plant does not fail"
    )
    return Finding("problem", "beyond-limits", what, {"share": share})


def _predictions(task: Task, found: Comparison) -> Iterator[Finding]:
    wanted = goals(task)
    for j, (name, share) in enumerate(zip(task.state_names, better(task, found), strict=True)):
        unit = task.states[name].unit
        if name not in task.predicted:
            continue
        if share > NO_BETTER:
            what = (
                f"{name} cannot be predicted from this log, at any distance better than if nothing changed "
                f"({_size(found.model[-1, j], unit)} against {_size(found.still[-1, j], unit)} after "
                f"{found.ahead[-1]} steps): write a longer history than {task.history} in the task, or log "
                "what it depends on, or more of it"
            )
            numbers = {"name": name, "share_of_still": share}
            yield Finding("problem" if name in wanted else "warning", "unpredictable", what, numbers)
        elif found.ahead:
            k = int(np.searchsorted(found.ahead, 10, side="right")) - 1
            ratio = float(found.model[k, j] / max(found.linear[k, j], 1e-300))
            if ratio > LINEAR and found.model[k, j] > 0.1 * found.still[k, j]:
                what = (
                    f"{found.ahead[k]} steps ahead, a linear model predicts {name} better than the networks, "
                    f"{ratio:.2g} times: there is too little data for them; log more"
                )
                yield Finding("warning", "worse-than-linear", what, {"name": name, "ratio": ratio})


def _regions(task: Task, surrogate: Surrogate, steps: Steps) -> Iterator[Finding]:
    """Where the predictions of one step are much worse than elsewhere: for each state, the worst part."""
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
                f"{name} is predicted {factor:.2g} times worse where {where} is from {low:.3g} to {high:.3g}"
            )
            yield Finding(
                "note", "weak-region", what, {"name": name, "where": where, "low": low, "high": high}
            )


def _weakest(squares: Floats, values: Floats) -> tuple[float, float, float]:
    """How much worse than usual, and from where to where."""
    edges = np.quantile(values, np.linspace(0, 1, PARTS + 1))
    if len(values) < FEWEST * PARTS or np.any(np.diff(edges) <= 0):
        return 0.0, 0.0, 0.0
    part = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, PARTS - 1)
    sizes = np.sqrt([squares[part == k].mean() for k in range(PARTS)])
    k, usual = int(np.argmax(sizes)), float(np.median(sizes))
    return float(sizes[k]) / usual if usual else 0.0, float(edges[k]), float(edges[k + 1])


def _reward(task: Task, surrogate: Surrogate, steps: Steps) -> Iterator[Finding]:
    """A reward that is learned as a value must depend on what is seen."""
    if task.reward_expression is not None or len(np.unique(steps.reward)) <= PARTS:
        return
    rewards, _ = surrogate.judge(steps.frame, 0)
    left = float(np.square(rewards - steps.reward).mean() / max(float(steps.reward.var()), 1e-300))
    if left > UNEXPLAINED:
        what = (
            f"the reward cannot be predicted from states and actions (only {100 * max(0.0, 1 - left):.2g} % "
            "of its variance): log what it depends on, or write it as an expression"
        )
        yield Finding("problem", "unpredictable-reward", what, {"unexplained": left})


def _size(value: float, unit: str) -> str:
    return f"{value:.2g} {unit}".rstrip()
