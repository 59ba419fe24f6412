"""What the report of a run says, gathered from its directory: plain data for the template."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from markupsafe import Markup

from clearloop.controllers import Controller, load
from clearloop.data import Batch, check
from clearloop.methods.registry import METHODS
from clearloop.report.chart import chart
from clearloop.report.details import details
from clearloop.report.images import as_image
from clearloop.report.lights import lights
from clearloop.report.progress import draw_progress
from clearloop.report.sentences import (
    beware,
    compared,
    format_penalty,
    headline,
    percent,
    planned,
    rounded,
    sentences,
    with_error,
)
from clearloop.report.surrogate import draw_quality
from clearloop.report.tuning import draw_tuning
from clearloop.report.typesetting import typeset
from clearloop.runs import Front, Ledger, RunDirectory, Trusted, read_trust
from clearloop.runs.request import changed_settings, settings_of
from clearloop.runs.tuning import read_tuning
from clearloop.surrogate import Surrogate, assess
from clearloop.task import Task

T = TypeVar("T")
Progress = Callable[[float], None]


def contents(run: RunDirectory, progress: Progress | None = None) -> dict[str, Any]:
    """`progress` is told the share that is done."""
    description, front = run.describe(), Front.read(run)
    task = run.task()
    batch = Batch.load(run.path / "batch.parquet", task)
    surrogate = Surrogate.load(run.path / "surrogate", task)
    examined, quality = check(batch, task), assess(surrogate, surrogate.split(batch)[1])
    controllers = [load(run.path / "controllers" / f"{entry.controller}.json") for entry in front.entries]
    rows, before = read_trust(run, description)
    trusted = {row.controller: row for row in rows}
    opened = _followed(
        details(front, controllers, task, batch, surrogate, trusted), len(controllers), progress
    )
    pick = front.entries[front.pick]
    return {
        "task": task,
        "headline": headline(front, rows, before),
        "doubts": [sentences(doubt["message"]) for doubt in description.get("doubts", [])],
        "before": sentences(f"the log itself: {compared(trusted.get(pick.controller), before)}")
        if before.text
        else "",
        "beware": [sentences(warning) for warning in beware(rows)],
        "pick": {
            "controller": pick.controller,
            "formula": typeset(controllers[front.pick]),
            "reason": sentences(description["pick"]["reason"]),
        },
        "units": _units(task, controllers[front.pick]),
        "lights": lights(front, examined, quality, opened[front.pick]["diagnosis"]),
        "chart": chart(front),
        "controllers": opened,
        "tested": pick.penalty_system is not None,
        "table": _table(front, trusted),
        "notes": [sentences(planned(front, i)) for i in front.planners],
        "data": {"summary": examined.summary, "findings": examined.findings},
        "model": {
            "text": sentences(f"{surrogate!r}: {quality.verdict}", *quality.reasons),
            "image": as_image(draw_quality(quality), "Errors of the model"),
        },
        "progress_image": as_image(draw_progress(Ledger(run).progress), "Progress of the search"),
        "tuning_image": _tuning(run, task),
        "again": _again(description),
    }


def _followed(parts: Iterator[T], total: int, progress: Progress | None) -> list[T]:
    found = []
    for part in parts:
        found.append(part)
        if progress:
            progress(len(found) / total)
    return found


def _tuning(run: RunDirectory, task: Task) -> Markup | None:
    courses = read_tuning(run)
    return as_image(draw_tuning(courses, task), "Trials of gains") if courses else None


def _units(task: Task, controller: Controller) -> str:
    """`force in N, limited to -10 … 10; theta in rad; …`"""
    said, controller = [], controller.for_task(task)
    for name, action in task.actions.items():
        words = controller.range_of(name).words("")
        said.append(f"{name}{f' in {action.unit}' if action.unit else ''}, {words}")
    said += [f"{name} in {state.unit}" for name, state in task.states.items() if state.unit]
    return "; ".join(said) + "."


def _table(front: Front, trusted: Mapping[str, Trusted]) -> list[dict[str, Any]]:
    rows = [
        {
            "id": entry.controller,
            "published": False,
            "method": entry.method,
            "complexity": entry.complexity,
            "promised": with_error(entry.penalty_model, entry.penalty_model_se),
            "system": with_error(entry.penalty_system, entry.penalty_system_se)
            if entry.penalty_system is not None
            else "",
            "failures": percent(entry.failures_system) if entry.failures_system is not None else "",
            "outside": _outside(trusted.get(entry.controller)),
            "formula": rounded(entry.formula),
        }
        for entry in front.entries
    ]
    rows += [
        {
            "id": "published",
            "published": True,
            "method": known.title,
            "complexity": "",
            "promised": format_penalty(known.penalty_model),
            "system": format_penalty(known.penalty_system),
            "failures": percent(known.failures_system),
            "outside": "",
            "formula": "",
        }
        for known in front.published
    ]
    return rows


def _outside(row: Trusted | None) -> str:
    return "" if row is None or row.outside is None else percent(row.outside)


def _again(description: dict[str, Any]) -> dict[str, Any]:
    asked = description["asked"]
    words = ["clearloop", "learn", asked["task"]]
    words += [word for file in asked["data"] for word in ("--data", file)]
    words += [word for method in asked["methods"] for word in ("--method", method)]
    words += ["--budget", str(asked["budget"]), "--track", asked["track"], "--seed", str(asked["seed"])]
    words += ["--value", asked["value"]] if asked["value"] != "model" else []
    for method, settings in asked["methods"].items():
        default = settings_of(METHODS[method]()) if method in METHODS else settings
        changed = changed_settings(settings, default)
        words += [word for setting in changed for word in ("--set", f"{method}.{setting}")]
    words += ["--force"] if description.get("doubts") else []
    facts = [
        ("begun", description.get("begun", "not said")),
        ("data", f"{description['data']['summary']}, SHA-256 {description['data']['fingerprint']}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in description["versions"].items())),
    ]
    for method, settings in asked["methods"].items():
        facts.append((f"settings of {method}", ", ".join(f"{k} = {v}" for k, v in settings.items())))
    facts += [(f"{method} was left out", why) for method, why in description.get("left_out", {}).items()]
    return {"command": shlex.join(words), "facts": facts}
