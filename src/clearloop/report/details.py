"""What the report says of each controller, when it is opened."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from clearloop.controllers import Controller, Fuzzy
from clearloop.data import Batch
from clearloop.diagnosis import Diagnosis, diagnose
from clearloop.evaluation import simulate
from clearloop.plants.scenarios import Scenarios
from clearloop.report.images import as_image
from clearloop.report.rules import draw_rules, ranges_of
from clearloop.report.sentences import format_penalty, percent, rounded, with_error
from clearloop.report.start_map import Outcomes, draw_start_maps
from clearloop.report.trajectory import draw_trajectories
from clearloop.report.typesetting import typeset
from clearloop.runs import Entry, Front, Trusted
from clearloop.surrogate import Surrogate
from clearloop.task import Task

SEED = 0  # of the noise: the same for all controllers

Facts = list[tuple[str, str]]


def details(
    front: Front,
    controllers: Sequence[Controller],
    task: Task,
    batch: Batch,
    surrogate: Surrogate,
    trusted: Mapping[str, Trusted],
) -> Iterator[dict[str, Any]]:
    """Of one after the other: some seconds each."""
    for entry, controller in zip(front.entries, controllers, strict=True):
        found = diagnose(controller, task, batch=batch, surrogate=surrogate, rng=np.random.default_rng(SEED))
        yield {
            "controller": entry.controller,
            "method": entry.method,
            "kind": controller.kind,
            "complexity": entry.complexity,
            "summary": rounded(entry.formula),
            "formula": typeset(controller),
            "words": "\n".join(rounded(line) for line in controller.words()),
            "diagnosis": found,
            "facts": [*_costs(entry), *_trust(trusted.get(entry.controller)), *_behaviour(found)],
            "warnings": trusted[entry.controller].warnings if entry.controller in trusted else [],
            "robustness": _robustness(found),
            "figures": _figures(entry, controller, found, task, batch, surrogate),
        }


def _costs(entry: Entry) -> Facts:
    facts = [("promised by the model", f"penalty {with_error(entry.penalty_model, entry.penalty_model_se)}")]
    if entry.penalty_system is not None:
        facts.append(("on the plant", f"penalty {with_error(entry.penalty_system, entry.penalty_system_se)}"))
    if entry.failures_system is not None:
        facts.append(("starts that fail", percent(entry.failures_system)))
    return facts


def _trust(row: Trusted | None) -> Facts:
    if row is None:
        return []
    facts = []
    if row.spread is not None:
        facts.append(
            ("the models differ by", f"{row.spread:.2g}, the standard deviation over those that judge")
        )
    if row.from_log is not None:
        facts.append(("promised from the log's own rows", f"penalty {format_penalty(row.from_log)}"))
    return facts


def _behaviour(found: Diagnosis) -> Facts:
    facts = []
    if found.linearisation is not None:
        facts.append(("close to its rest", repr(found.linearisation)))
    for step in found.steps:
        time = step.settling_time
        settled = "does not settle" if time is None else f"settles in {time:.3g} s"
        error = f"{step.integral_error:.3g} {step.unit} s".replace("  ", " ")
        said = f"{settled}, overshoot {step.overshoot:.3g} %, integral of the absolute error {error}"
        facts.append((f"a step of {step.state} by {step.size:g} {step.unit}".rstrip(), said))
    if found.coverage is not None:
        facts.append(("outside the logged region", f"{100 * found.coverage.outside:.1f} % of visited states"))
    return facts + [(f"no {what}", why) for what, why in found.left_out.items()]


def _robustness(found: Diagnosis) -> list[dict[str, str]]:
    if found.robustness is None:
        return []
    calm = found.robustness
    undisturbed = {"name": "nothing", "penalty": f"{calm.penalty:.2f}", "failures": percent(calm.failures)}
    return [undisturbed] + [
        {
            "name": one.name,
            "penalty": f"{one.penalty:.2f} ({one.change:+.2f} ± {one.standard_error:.2f})",
            "failures": percent(one.failures),
        }
        for one in calm.disturbed
    ]


def _figures(
    entry: Entry, controller: Controller, found: Diagnosis, task: Task, batch: Batch, surrogate: Surrogate
) -> list[dict[str, Any]]:
    model = None if task.simulated and task.scorable else surrogate
    where = "on the plant" if model is None else "on the model"
    if task.start_box is None:
        row = _telling_row(task, batch)
        said = f"row {row + 1:,} of the log"
        scenario = Scenarios.logged(task, batch, np.array([row]))
        trajectory = simulate(controller, task, surrogate=model, scenario=scenario)
    else:
        start = _telling_start(task)
        said = ", ".join(f"{name} = {value:g}" for name, value in start.items())
        trajectory = simulate(controller, task, surrogate=model, start=start)
    figures = [(draw_trajectories({entry.controller: trajectory}), f"One run {where} from {said or 'rest'}.")]
    where = f"on the {'plant' if found.on == 'system' else 'model'}"
    if found.starts is not None:
        outcome = Outcomes(found.starts.penalties, found.starts.failed)
        drawn = draw_start_maps(task, found.starts.starts, {entry.controller: outcome})
        figures.append((drawn, f"Starts that it saves and loses {where}."))
    if isinstance(controller, Fuzzy):
        figures.append((draw_rules(controller, task, ranges_of(batch, task)), "Its rules."))
    return [{"image": as_image(figure, caption), "caption": caption} for figure, caption in figures]


def _telling_start(task: Task) -> dict[str, float]:
    """Halfway to the corner of the box of starts."""
    full = task.unveiled
    assert full.start_box is not None  # noqa: S101
    point = full.start_box.mean(axis=1) + np.ptp(full.start_box, axis=1) / 4
    return {name: float(value) for name, value in zip(full.state_names, point, strict=True) if value}


def _telling_row(task: Task, batch: Batch) -> int:
    """Of the log: before its largest change of a setpoint, if there is one."""
    if batch.setpoints is None:
        return 0
    changes = np.abs(np.diff(batch.setpoints, axis=0)).sum(axis=1) * (np.diff(batch.episodes) == 0)
    row = max(0, int(changes.argmax()) - task.horizon // 5)
    return row if batch.episodes[row] == batch.episodes[int(changes.argmax())] else int(changes.argmax())
