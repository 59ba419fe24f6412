"""One log, one promise, and the truth: what the package says about a pair, and what its plant says.

Everything that the package does here it does with `Pair.task` and `Pair.log` alone, in the steps of
`clearloop learn`: the check of the data, the model, its examination, the searches, the judgement and the
pick. The plant comes in at the end.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Equation
from clearloop.data import check
from clearloop.data.findings import Report
from clearloop.data.log import last_rows, usual_setpoints
from clearloop.diagnosis import (
    LoggedMargins,
    compare_margins,
    find_logged_margins,
    find_resting_margins,
)
from clearloop.diagnosis.diagnosis import aimed
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.evaluation.linearisation import linearise, linearise_each
from clearloop.evaluation.rollouts import LoggedCost
from clearloop.methods import Method, Point, Result, learn
from clearloop.methods.evolving import Rounds, Sample
from clearloop.methods.gprl import GPRL
from clearloop.methods.learning import repeat_log
from clearloop.methods.linear_model import identify
from clearloop.methods.lqr import LQR
from clearloop.methods.pid import PID
from clearloop.methods.plant_answers import find_answers
from clearloop.plants.scenarios import Scenarios
from clearloop.runs.front import Front, method_rng
from clearloop.search.gp.genome import GP
from clearloop.search.pso import PSO
from clearloop.surrogate import BEST, Surrogate, Track, assess, examine_model
from reproductions.exact import ExactLoop, linearise_exactly
from reproductions.families import Pair, make_pair

SEED = 0  # of the run, as `clearloop learn` has it by default
MOST_STARTS = 2048  # rows of the log that the plant is started from
ROUGH = ("friction", "backlash")  # families that have no slopes where they rest: their margins mean nothing
Record = dict[str, Any]
"""A line of `pairs.jsonl`."""


def _rounds(starts: int) -> Rounds:
    return Rounds(
        race=Sample(starts // 2, 1),
        tune=Sample(starts, 1),
        score=Sample(2 * starts, 1),
        final=Sample(4 * starts, None),
    )


@dataclass(frozen=True)
class Effort:
    """How long a pair is worked on."""

    track: Track = field(default_factory=lambda: replace(BEST, search=3, judge=5))
    budget: int = 20_000_000
    """model steps of GPRL"""
    methods: tuple[Method, ...] = (
        LQR(),
        PID(swarm=PSO(particles=20), rounds=8, starts=64),
        GPRL(gp=GP(islands=(11, 15, 21, 27), population=24, offspring=40), rounds=_rounds(32)),
    )
    rows: int | None = None
    """transitions of the log; None: as many as the pair has"""


def measure(number: int, effort: Effort, family: str | None = None) -> Record:
    """Make a pair, learn from its log, and compare what is promised with the plant.

    Args:
        number: The number of the pair.
        effort: How long to work on it.
        family: Another family than the number's.

    Returns:
        The record of the pair, of JSON values.
    """
    clock = _Clock()
    with clock("log"):
        pair = make_pair(number, family, effort.rows)
    record: Record = {
        "pair": number,
        "family": pair.family,
        "logger": pair.logger,
        "task": {
            "horizon": pair.task.horizon,
            "history": pair.task.history,
            "moving": pair.log.setpoints is not None,
            "integral": any(name.endswith("_sum") for name in pair.task.states),
        },
        "rows": len(pair.log),
        "seconds": clock.seconds,
    }
    with clock("check"):
        pair, found = _as_advised(pair)
        record["task"]["history"] = pair.task.history
        refusals = [one for one in found.findings if one.severity == "problem"]
        record["warnings"] = [one.code for one in found.findings if one.severity == "warning"]
    try:
        with clock("model"):
            surrogate = Surrogate.fit(
                pair.task, pair.log, track=effort.track, rng=np.random.default_rng([SEED, 1])
            )
    except ClearloopError as error:
        return record | {"error": f"model: {error}"}
    with clock("replays"):
        surrogate, replays = repeat_log(pair.task, pair.log, surrogate)
    if replays is not None:
        judges = {"judges": list(surrogate.judge_members)}
        record["replays"] = replays.summary.model_dump(mode="json") | judges
    with clock("examination"):
        quality = assess(surrogate, surrogate.split(pair.log)[1])
        found_model = examine_model(pair.task, pair.log, surrogate)
        refusals += [one for one in found_model if one.severity == "problem"]
    record["grade"] = quality.verdict
    record["refusals"] = [{"code": one.code, "message": one.message} for one in refusals]
    results, record["methods"] = _search(pair, surrogate, effort, clock)
    with clock("linear"):
        record["linear"] = _linear(pair)
    if results:
        with clock("pick"):
            front = Front.of(results)
            points = [point for result in results for point in result.points]
            point, entry = points[front.pick], front.entries[front.pick]
            record |= _promise(point, entry)
            record["method"], record["formula"] = entry.method, entry.formula
        with clock("truth"):
            record |= _truth(pair, point.controller)
            record["every"] = _others(pair, results)
        with clock("margins"):
            record["margins"] = _margins(pair, surrogate, point.controller)
    return record


def _as_advised(pair: Pair) -> tuple[Pair, Report]:
    """Return the pair with the history that the check of its log advises, as a user would write it."""
    found = check(pair.task, pair.log)
    advised = [one.numbers["history"] for one in found.findings if one.code in ("delay", "short-history")]
    longer = max(advised, default=0)
    if longer <= pair.task.history:
        return pair, found
    task, glass = (one.model_copy(update={"history": longer}) for one in (pair.task, pair.glass))
    pair = replace(pair, task=task, glass=glass)
    return pair, check(task, pair.log)


class _Clock:
    """The seconds of each phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = round(perf_counter() - begun, 3)


def _search(
    pair: Pair, surrogate: Surrogate, effort: Effort, clock: _Clock
) -> tuple[list[Result], dict[str, str]]:
    """Return the result of each method that gives one; and for each method nothing, or why it gives none."""
    results, said = [], {}
    for method in effort.methods:
        said[method.name] = ""
        with clock(method.name):
            try:
                results.append(
                    learn(
                        pair.task,
                        pair.log,
                        method,
                        rng=method_rng(SEED),
                        budget=effort.budget,
                        surrogate=surrogate,
                        force=True,
                    )
                )
            except ClearloopError as error:
                said[method.name] = str(error)
    return [result for result in results if result.points], said


# The promise with its interval.


def _promise(point: Point, entry: Any) -> Record:
    """Return what the front says of the pick."""
    each = point.model.penalties.mean(axis=1)
    low, high = stated_interval(point, entry)
    provisional = low is None
    if low is None or high is None:
        low, high = provisional_interval(point)
    return {
        "promise": point.model.penalty,
        "low": low,
        "high": high,
        "provisional": provisional,
        "judges": [float(one) for one in each],
        "disturbed": point.disturbed,
        "failures": point.model.failures,
    }


def stated_interval(point: Point, entry: Any) -> tuple[float | None, float | None]:
    """Return the 95 % interval that the front states, or nothing if it states none."""
    for source in (entry, point):
        low, high = getattr(source, "penalty_low", None), getattr(source, "penalty_high", None)
        if low is not None and high is not None:
            return float(low), float(high)
    return None, None


def provisional_interval(point: Point) -> tuple[float, float]:
    """Return an interval for a front that states none: the judges' mean, and Student's t of their spread."""
    from scipy.stats import t

    each: Floats = point.model.penalties.mean(axis=1)
    m = len(each)
    within = point.model.standard_error
    between = float(each.std(ddof=1)) if m > 1 else 0.0
    far = float(np.hypot(t.ppf(0.975, max(m - 1, 1)) * between * math.sqrt(1 + 1 / m), 1.96 * within))
    return point.model.penalty - far, point.model.penalty + far


# The truth: the plant, started from the rows of the log, with what came from outside then.


def start_again(pair: Pair) -> Scenarios:
    """Return the situations of the log for the plant: hidden states, setpoints, disturbances as they were.

    The sensors' noise is drawn anew, because the log ends and its noise would stop there.
    """
    rows = np.flatnonzero(~last_rows(pair.seen.episodes))
    rows = rows[np.linspace(0, len(rows) - 1, min(MOST_STARTS, len(rows))).astype(np.int64)]
    scenarios = Scenarios.logged(pair.glass, pair.seen, rows)
    script, rng = scenarios.script.copy(), np.random.default_rng([SEED, pair.number])
    for column, name in enumerate(pair.glass.scope.external):
        signal = pair.glass.signals.get(name)
        if signal is not None and signal.noise is not None:
            script[:, 1:, column] = rng.normal(0.0, signal.noise, script[:, 1:, column].shape)
    return replace(scenarios, script=script)


def _truth(pair: Pair, pick: Controller) -> Record:
    starts = start_again(pair)
    found = evaluate(pick, pair.glass, starts=starts)
    logged = LoggedCost(pair.task, pair.log)
    costs = logged.penalties(np.arange(len(logged.rows)))
    log = float(costs.mean()) if len(costs) else None
    own = evaluate(pair.law, pair.glass, starts=starts).penalty if pair.law else log
    return {"truth": found.penalty, "truth_se": found.standard_error, "own": own, "logged": log}


def _others(pair: Pair, results: list[Result]) -> list[Record]:
    """Return promise and truth of the best of each method."""
    starts, rows = start_again(pair), []
    for result in results:
        point = result.points[-1]
        low, high = stated_interval(point, None)
        if low is None or high is None:
            low, high = provisional_interval(point)
        truth = evaluate(point.controller, pair.glass, starts=starts).penalty
        rows.append(
            {
                "method": result.method,
                "promise": point.model.penalty,
                "low": low,
                "high": high,
                "truth": truth,
            }
        )
    return rows


# The linear model's static gain, and the margins, beside those of the plant.


def _linear(pair: Pair) -> Record:
    """Return the static gain [M, A] by the linear model of the log, with null for what is called unknown."""
    task = pair.task
    try:
        model = identify(task, pair.log)
    except ClearloopError as error:
        return {"error": str(error)}
    answers = {(one.state, one.action): one for one in find_answers(model)}
    gain: list[list[float | None]] = []
    for state in task.setpoints:
        row: list[float | None] = []
        for action in task.action_names:
            answer = answers.get((state, action))
            settles = answer is None or answer.kind == "settles"
            row.append((answer.gain if answer else 0.0) if settles and (not answer or answer.known) else None)
        gain.append(row)
    kinds = sorted({one.kind for one in answers.values()})
    return {"gain": gain, "kind": kinds, "stray": model.equations.stray}


def _margins(pair: Pair, surrogate: Surrogate, pick: Controller) -> Record:
    """Return the margins of the pick and of the log's own controller: the package's and the plant's."""
    found: Record = {}
    smooth = pair.family not in ROUGH
    loops: list[ExactLoop] = []
    for name, controller in (("own", pair.linear), ("pick", pick)):
        if controller is None:
            continue
        exact = exact_loop(pair, controller)
        true = exact.margins() if exact and smooth else None
        found[name] = {
            "true_stable": exact.stable if exact else None,
            "true": true and _finite(vars(true)),
            **_said(pair, surrogate, controller),
        }
        loops += [exact] if exact else []
    return found | ({"gain": _plant_gain(pair, loops)} if smooth else {})


def _plant_gain(pair: Pair, loops: Sequence[ExactLoop]) -> list[list[float]] | None:
    """Return the plant's static gain [M, A] where one of the loops rests, or at the log's mean action."""
    if not loops:  # a pick may never come to rest
        means = np.nanmean(pair.log.actions, axis=0).tolist()
        held = Equation(
            outputs={name: repr(mean) for name, mean in zip(pair.task.actions, means, strict=True)}
        )
        alone = exact_loop(pair, held)
        loops = [alone] if alone else []
    gain = loops[0].static_gain() if loops else None
    return None if gain is None else gain.tolist()


def exact_loop(pair: Pair, controller: Controller) -> ExactLoop | None:
    """Return the plant of a pair and a controller, linear about rest at the usual setpoints; or None."""
    glass, task = pair.glass, pair.task
    aims, start = np.zeros(len(glass.states)), pair.seen.states.mean(axis=0)
    usual = {name: aim for name, aim in task.setpoints.items() if not isinstance(aim, str)}
    usual |= usual_setpoints(task, pair.log.setpoints)
    for name, aim in usual.items():
        aims[glass.state_names.index(name)] = aim
    for name in (*glass.scope.external, *glass.derived):
        start[glass.state_names.index(name)] = 0.0
    return linearise_exactly(controller, glass, aims, start, pair.seen.states.std(axis=0))


def _said(pair: Pair, surrogate: Surrogate, controller: Controller) -> Record:
    """Return what the sign-off sheet says of a controller: by the linear model of the log, and by the models.

    Numbers that the sheet calls unknown are listed under `unknown`.
    """
    task, log = pair.task, pair.log
    ready = aimed(controller.for_task(task), task, log)
    spread, members = log.states.std(axis=0), surrogate.judge_members
    try:
        linear = linearise(ready, task, spread=spread, surrogate=surrogate, members=members)
    except ClearloopError as error:
        return {"error": str(error)}
    if linear is None:
        return {}
    each = linearise_each(ready, task, spread=spread, surrogate=surrogate, members=members)
    resting = find_resting_margins(controller.for_task(task), linear, each, log)
    said: Record = {}
    try:
        found = find_logged_margins(controller.for_task(task), linear, identify(task, log), log)
    except ClearloopError as error:
        said["why"] = str(error)
    else:
        found, resting = compare_margins(found, resting)
        said["log"], said["why"] = _numbers(found), found.why
    said["model"] = _numbers(resting)
    return said


def _numbers(found: LoggedMargins) -> Record | None:
    """Return whether a loop is stable, the least margins of its actions, and which of them are unknown."""
    margins = found.margins
    if margins is None:
        return None
    numbers: Record = {"stable": margins.stable, "unknown": sorted({name for _, name in found.unknown})}
    for name in ("gain_up", "phase", "delay"):
        values = [getattr(one, name) for one in margins.actions]
        numbers[name] = min((one for one in values if one is not None), default=None)
    return numbers


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
