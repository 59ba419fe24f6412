"""What the report says of each controller, when it is opened."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.evaluation import simulate
from clearloop.report.images import as_image
from clearloop.report.sentences import format_penalty, rounded
from clearloop.report.trajectory import draw_trajectories
from clearloop.report.typesetting import typeset
from clearloop.runs import Entry, Front
from clearloop.surrogate import Surrogate
from clearloop.task import Task


def details(
    front: Front, controllers: Sequence[Controller], task: Task, batch: Batch, surrogate: Surrogate
) -> list[dict[str, Any]]:
    return [
        _detail(entry, controller, task, batch, surrogate)
        for entry, controller in zip(front.entries, controllers, strict=True)
    ]


def _detail(
    entry: Entry, controller: Controller, task: Task, batch: Batch, surrogate: Surrogate
) -> dict[str, Any]:
    return {
        "controller": entry.controller,
        "method": entry.method,
        "kind": controller.kind,
        "complexity": entry.complexity,
        "summary": rounded(entry.formula),
        "formula": typeset(controller),
        "words": "\n".join(rounded(line) for line in controller.words()),
        "facts": _facts(entry),
        "robustness": [],
        "figures": _figures(controller, task, batch, surrogate),
    }


def _facts(entry: Entry) -> list[tuple[str, str]]:
    facts = [("promised by the model", _with_error(entry.penalty_model, entry.penalty_model_se))]
    if entry.penalty_system is not None:
        facts.append(("on the plant", _with_error(entry.penalty_system, entry.penalty_system_se)))
    if entry.failures_system is not None:
        facts.append(("starts that fail", f"{100 * entry.failures_system:.1f} %"))
    return facts


def _with_error(mean: float, error: float | None) -> str:
    return f"penalty {format_penalty(mean)}" + (f" ± {error:.2g}" if error is not None else "")


def _telling_start(task: Task, batch: Batch) -> dict[str, float]:
    """Halfway to the corner of the box of starts; where there is none, the first state of the log."""
    box = task.start_box
    point = batch.states[0] if box is None else box.mean(axis=1) + np.ptp(box, axis=1) / 4
    return {name: float(value) for name, value in zip(task.state_names, point, strict=True) if value}


def _figures(controller: Controller, task: Task, batch: Batch, surrogate: Surrogate) -> list[dict[str, Any]]:
    model = None if task.plant is not None else surrogate
    start = _telling_start(task, batch)
    trajectory = simulate(controller, task, surrogate=model, start=start)
    where = "on the plant" if model is None else "on the model"
    said = ", ".join(f"{name} = {value:g}" for name, value in start.items())
    return [
        {
            "image": as_image(draw_trajectories({"": trajectory}), f"Trajectory {where}"),
            "caption": f"One run {where} from {said or 'rest'}.",
        }
    ]
