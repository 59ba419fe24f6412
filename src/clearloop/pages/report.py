"""The report of a run: its contents as plain data from the run directory, and the page `report.html`."""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from markupsafe import Markup

from clearloop.controllers import Controller, load
from clearloop.data import Batch, check
from clearloop.data.findings import Report
from clearloop.diagnosis import Diagnosis, Linearisation, diagnose
from clearloop.evaluation import Trajectory, simulate
from clearloop.figures.model import draw_quality
from clearloop.figures.progress import draw_progress, draw_tuning
from clearloop.figures.rules import draw_rules, ranges_of
from clearloop.figures.style import COLOURS, as_image
from clearloop.figures.trajectories import Outcomes, draw_start_maps, draw_trajectories
from clearloop.files import whole_file
from clearloop.numbers import (
    amount,
    estimate,
    format_penalty,
    penalty_with_error,
    percent,
    shorten_numbers,
    signed_estimate,
)
from clearloop.pages.formulas import typeset
from clearloop.pages.sentences import (
    beware,
    compared,
    cost_of,
    headline,
    interval,
    kept,
    planned,
    promised,
    sentences,
)
from clearloop.plants.scenarios import Scenarios
from clearloop.registry import METHODS
from clearloop.runs import Entry, Front, Ledger, RunDirectory, Trusted, read_trust
from clearloop.runs.directory import changed_settings, settings_of
from clearloop.runs.learning import read_tuning
from clearloop.surrogate import Quality, Surrogate, assess
from clearloop.surrogate.quality import Grade
from clearloop.task import Task

# The details of each controller, which are shown when it is opened.

NOISE_SEED = 0  # of the disturbed runs; the same for all controllers, in report and card

Facts = list[tuple[str, str]]


def details(
    front: Front,
    controllers: Sequence[Controller],
    task: Task,
    batch: Batch,
    surrogate: Surrogate,
    trusted: Mapping[str, Trusted],
) -> Iterator[dict[str, Any]]:
    """Examine one controller after the other, which takes some seconds each; yield the values for the page.

    Args:
        front: The front of the run.
        controllers: The controllers of the front, in the same order.
        task: The task of the run.
        batch: The log.
        surrogate: The model of the run.
        trusted: The rows of `trust.csv` by controller.
    """
    for entry, controller in zip(front.entries, controllers, strict=True):
        found = diagnose(
            controller, task, batch=batch, surrogate=surrogate, rng=np.random.default_rng(NOISE_SEED)
        )
        yield {
            "controller": entry.controller,
            "method": entry.method,
            "kind": controller.kind,
            "complexity": entry.complexity,
            "summary": shorten_numbers(entry.formula),
            "formula": typeset(controller),
            "words": "\n".join(shorten_numbers(line) for line in controller.words()),
            "diagnosis": found,
            "facts": [*_costs(entry), *_trust(trusted.get(entry.controller)), *_behaviour(found)],
            "warnings": trusted[entry.controller].warnings if entry.controller in trusted else [],
            "robustness": _robustness(found),
            "figures": _figures(entry, controller, found, task, batch, surrogate),
        }


def _costs(entry: Entry) -> Facts:
    facts = [
        (
            "promised by the model",
            f"penalty {penalty_with_error(entry.penalty_model, entry.penalty_model_se)}",
        )
    ]
    if entry.penalty_system is not None:
        facts.append(
            ("on the plant", f"penalty {penalty_with_error(entry.penalty_system, entry.penalty_system_se)}")
        )
    if entry.failures_system is not None:
        facts.append(("starts that fail", percent(entry.failures_system)))
    return facts


def _trust(row: Trusted | None) -> Facts:
    if row is None:
        return []
    facts = []
    if row.spread is not None:
        facts.append(
            ("the models differ by", f"{row.spread:.2g} (standard deviation over the judging models)")
        )
    if row.from_log is not None:
        facts.append(("promised from the rows of the log", f"penalty {format_penalty(row.from_log)}"))
    return facts


def _behaviour(found: Diagnosis) -> Facts:
    facts = []
    if found.linearisation is not None:
        facts.append(("near the steady state", repr(found.linearisation)))
    for step in found.steps:
        error = amount(step.integral_error, f"{step.unit} s".lstrip(), 3)
        said = f"{step.words}, integral of the absolute error {error}"
        facts.append((f"a step of {step.state} by {amount(step.size, step.unit, 6)}", said))
    if found.coverage is not None:
        facts.append(("outside the logged region", f"{percent(found.coverage.outside)} of visited states"))
    return facts + [(f"no {what}", why) for what, why in found.left_out.items()]


def _robustness(found: Diagnosis) -> list[dict[str, str]]:
    if found.robustness is None:
        return []
    calm = found.robustness
    undisturbed = {
        "name": "nothing",
        "penalty": estimate(calm.penalty, places=2),
        "failures": percent(calm.failures),
    }
    return [undisturbed] + [
        {
            "name": one.name,
            "penalty": f"{estimate(one.penalty, places=2)}"
            f" ({signed_estimate(one.change, one.standard_error, 2)})",
            "failures": percent(one.failures),
        }
        for one in calm.disturbed
    ]


def _figures(
    entry: Entry, controller: Controller, found: Diagnosis, task: Task, batch: Batch, surrogate: Surrogate
) -> list[dict[str, Any]]:
    trajectory, where = telling_run(controller, task, batch, surrogate)
    figures = [(draw_trajectories({entry.controller: trajectory}), f"One run {where}.")]
    where = f"on the {found.place}"
    if found.starts is not None:
        outcome = Outcomes(found.starts.penalties, found.starts.failed)
        drawn = draw_start_maps(task, found.starts.starts, {entry.controller: outcome})
        figures.append((drawn, f"The penalty from each start, and the starts that fail, {where}."))
    if any(controller.rules()):
        figures.append((draw_rules(controller, task, ranges_of(task, batch)), "Its rules."))
    return [{"image": as_image(figure, caption), "caption": caption} for figure, caption in figures]


def telling_run(
    controller: Controller, task: Task, batch: Batch, surrogate: Surrogate
) -> tuple[Trajectory, str]:
    """Run a controller once where it shows what it does, and say in words where that is.

    Args:
        controller: The controller, with the limits of the task.
        task: The task; the run is on its plant, if it has one.
        batch: The log, which gives the start if the task has no box of starts.
        surrogate: The model for a task without a plant.
    """
    model = None if task.simulated and task.scorable else surrogate
    where = "on the plant" if model is None else "on the model"
    if task.start_box is None:
        row = _telling_row(task, batch)
        scenario = Scenarios.logged(task, batch, np.array([row]))
        trajectory = simulate(controller, task, surrogate=model, scenario=scenario)
        return trajectory, f"{where} from row {row + 1:,} of the log"
    start = _telling_start(task)
    said = ", ".join(f"{name} = {value:g}" for name, value in start.items())
    return simulate(controller, task, surrogate=model, start=start), f"{where} from {said or 'rest'}"


def _telling_start(task: Task) -> dict[str, float]:
    """Return the start halfway between the middle and the upper corner of the start box."""
    full = task.unveiled
    assert full.start_box is not None  # noqa: S101
    point = full.start_box.mean(axis=1) + np.ptp(full.start_box, axis=1) / 4
    return {name: float(value) for name, value in zip(full.state_names, point, strict=True) if value}


def _telling_row(task: Task, batch: Batch) -> int:
    """Return a row of the log shortly before its largest change of a setpoint, or the first row."""
    if batch.setpoints is None:
        return 0
    changes = np.abs(np.diff(batch.setpoints, axis=0)).sum(axis=1) * (np.diff(batch.episodes) == 0)
    row = max(0, int(changes.argmax()) - task.horizon // 5)
    return row if batch.episodes[row] == batch.episodes[int(changes.argmax())] else int(changes.argmax())


# Four lights beside the pick grade how far to believe it, each with a reason in words. The two limits of a
# grade are the largest values for good and for fair.

SIGNS: dict[Grade, str] = {"good": "●", "fair": "◐", "poor": "○"}
REASONS = 2  # of the verdict on the model that a light gives; the section on the model gives all
KEPT, _NEARLY = 0.05, 0.15  # relative difference of plant and promise
FEW, MANY = 0.05, 0.2  # share of the starts that a disturbance makes fail
DEARER, TWICE = 0.25, 1.0  # relative increase of the penalty under a disturbance


class Light(NamedTuple):
    """One light: what it is about, its grade, and the reason."""

    name: str
    grade: Grade
    text: str

    @property
    def sign(self) -> str:
        """The circle that stands for the grade."""
        return SIGNS[self.grade]


def lights(front: Front, examined: Report, quality: Quality, pick: Diagnosis) -> list[Light]:
    """Return the lights for the data, the model, the promise and the disturbances.

    Args:
        front: The front of the run.
        examined: The findings about the log.
        quality: The quality of the model.
        pick: The diagnosis of the pick.
    """
    found = [_data(examined), Light("The model", quality.verdict, sentences(*quality.reasons[:REASONS]))]
    return [*found, _promise(front), *_calm(pick)]


def _data(examined: Report) -> Light:
    grade: Grade = "good" if examined.severity in ("ok", "note") else "fair"
    return Light("The data", "poor" if examined.severity == "problem" else grade, examined.verdict)


def _promise(front: Front) -> Light:
    pairs = [(e.penalty_model, e.penalty_system) for e in front.entries if e.penalty_system is not None]
    if not pairs:
        said = [words] if (words := promised(front.entries[front.pick])) else []
        untested = "there is no plant to test it on: only the model says so"
        return Light("The promise", "fair", sentences(*said, untested))
    apart = max(abs(cost - promise) / max(abs(promise), 1e-9) for promise, cost in pairs)
    return Light("The promise", _graded(apart, KEPT, _NEARLY), sentences(kept(front)))


def _calm(pick: Diagnosis) -> list[Light]:
    """Grade the effect of the worst disturbance on the pick."""
    if pick.robustness is None:
        return []
    before = pick.robustness
    worst = max(before.disturbed, key=lambda one: (one.failures, one.penalty))
    lost, dearer = worst.failures - before.failures, worst.change / max(abs(before.penalty), 1e-9)
    fails = f"{percent(worst.failures)} of the starts fail instead of {percent(before.failures)}"
    costs = f"it costs {percent(dearer, 0)} more" if dearer > 0 else "it costs no more"
    said = f"with {worst.name} {costs}, and {fails if lost > 0 else 'no more starts fail'}"
    grade = max(_graded(lost, FEW, MANY), _graded(dearer, DEARER, TWICE), key=list(SIGNS).index)
    return [Light("Disturbed", grade, sentences(said, *_small_deviations(pick.linearisation)))]


def _small_deviations(found: Linearisation | None) -> Iterator[str]:
    if found is not None:
        holds = found.at_rest and found.smooth
        yield f"near the steady state it is {found!r}" if holds else f"it {found!r}"


def _graded(value: float, good: float, fair: float) -> Grade:
    return "good" if value <= good else "fair" if value <= fair else "poor"


# The front as an SVG chart: the places of all points, ticks and labels in a box of fixed size. Both axes are
# logarithmic where that is possible, because penalties and complexities of one front span decades.

_WIDTH, HEIGHT = 640, 400
_LEFT, RIGHT, TOP, BOTTOM = 56, 14, 14, 44
SHAPES = ("circle", "square", "triangle", "diamond", "cross")
MOST_TICKS = 6
DECADE = 10.0


@dataclass(frozen=True)
class Axis:
    """One axis of the chart, which maps values to places."""

    low: float
    """the value at the place `first`"""
    high: float
    """the value at the place `last`"""
    first: float
    last: float

    @classmethod
    def of(cls, values: Sequence[float], first: float, last: float) -> "Axis":
        """Make an axis that holds all values, with some room on both sides where it is logarithmic."""
        low, high = min(values), max(values)
        if low <= 0:  # no logarithm
            low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
            return cls(low, high, first, last)
        return cls(low / 1.12, high * 1.12, first, last)

    @property
    def _decades(self) -> bool:
        return self.low > 0

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(x) if self._decades else x for x in (self.low, self.high, value))
        return round(self.first + (self.last - self.first) * (value - low) / (high - low), 1)

    def ticks(self, *, whole: bool = False) -> list[float]:
        """Return a few round numbers for ticks; `whole` asks for integers."""
        from matplotlib.ticker import MaxNLocator

        if not self._decades or self.high < DECADE * self.low:
            ticks = MaxNLocator(MOST_TICKS, integer=whole).tick_values(self.low, self.high)
            return [float(tick) for tick in ticks if self.low <= tick <= self.high]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            ticks = [digit * 10.0**power for power in powers for digit in digits]
            inside = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(inside) <= MOST_TICKS + 2:
                break
        return inside


def chart(front: Front) -> dict[str, Any]:
    """Return the places and texts of the chart of the front, for the template."""
    costs = [cost_of(entry) for entry in front.entries]
    known = [row for row in front.published if row.in_paper]
    tested = front.entries[0].penalty_system is not None
    lines = [(row.penalty_system if tested else row.penalty_model) for row in known]
    x = Axis.of([entry.complexity for entry in front.entries], _LEFT, _WIDTH - RIGHT)
    y = Axis.of([*costs, *lines, *(entry.penalty_model for entry in front.entries)], HEIGHT - BOTTOM, TOP)
    methods = {
        name: {"colour": COLOURS[n % len(COLOURS)], "shape": SHAPES[(n + n // len(COLOURS)) % len(SHAPES)]}
        for n, name in enumerate(dict.fromkeys(entry.method for entry in front.entries))
    }
    points = [
        {
            "id": entry.controller,
            "x": x(entry.complexity),
            "y": y(cost),
            "promised": y(entry.penalty_model) if tested else None,
            **methods[entry.method],
            "pick": i == front.pick,
            "label": f"{entry.controller}: {entry.method}, complexity {entry.complexity}, penalty"
            f" {format_penalty(cost)}",
        }
        for i, (entry, cost) in enumerate(zip(front.entries, costs, strict=True))
    ]
    return {
        "width": _WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "points": points,
        "x_ticks": [{"at": x(tick), "text": f"{tick:.10g}"} for tick in x.ticks(whole=True)],
        "y_ticks": [{"at": y(tick), "text": f"{tick:.10g}"} for tick in y.ticks()],
        "known": [
            {"y": y(line), "title": f"{row.title} {format_penalty(line)}"}
            for row, line in zip(known, lines, strict=True)
        ],
        "methods": [{"name": name, **look} for name, look in methods.items()],
        "where": "on the plant" if tested else "as promised by the model",
    }


# The whole report.

TEMPLATES = Path(__file__).parent / "templates"
_T = TypeVar("_T")
_Progress = Callable[[float], None]


def write_report(run: RunDirectory, progress: _Progress | None = None) -> Path:
    """Write `report.html`, one file that a browser opens from the disk without network or server.

    Args:
        run: A finished run.
        progress: Is called with the share that is done, from 0 to 1.

    Returns:
        The path of the report.
    """
    file, page = run.path / "report.html", render(TEMPLATES / "report.html", report_contents(run, progress))
    with whole_file(file) as out:
        out.write(page.encode())
    return file


def report_contents(run: RunDirectory, progress: _Progress | None = None) -> dict[str, Any]:
    """Return the values that the template of the report needs; `progress` as in `write_report`."""
    description, front = run.describe(), Front.read(run)
    task = run.task()
    batch = Batch.load(run.path / "batch.parquet", task)
    surrogate = Surrogate.load(run.path / "surrogate", task)
    examined, quality = check(task, batch), assess(surrogate, surrogate.split(batch)[1])
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
        "before": sentences(f"the log itself: {compared(trusted.get(pick.controller), before, pick)}")
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


def _followed(parts: Iterator[_T], total: int, progress: _Progress | None) -> list[_T]:
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
    """Return a line such as `force in N, limited to -10 … 10; theta in rad.`"""
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
            "promised": format_penalty(entry.penalty_model) + interval(entry),
            "system": penalty_with_error(entry.penalty_system, entry.penalty_system_se)
            if entry.penalty_system is not None
            else "",
            "failures": percent(entry.failures_system) if entry.failures_system is not None else "",
            "outside": _outside(trusted.get(entry.controller)),
            "formula": shorten_numbers(entry.formula),
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
        ("begun", description.get("begun", "unknown")),
        ("data", f"{description['data']['summary']}, SHA-256 {description['data']['fingerprint']}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in description["versions"].items())),
    ]
    for method, settings in asked["methods"].items():
        facts.append((f"settings of {method}", ", ".join(f"{k} = {v}" for k, v in settings.items())))
    facts += [(f"{method} was left out", why) for method, why in description.get("left_out", {}).items()]
    return {"command": shlex.join(words), "facts": facts}


def render(template: Path, values: dict[str, Any], **filters: Callable[[Any], Any]) -> str:
    """Fill in a Jinja template, which may include files beside it. Texts from users' files are escaped.

    Args:
        template: The file of the template.
        values: The values by name.
        filters: Further filters of the template by name.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template.name).render(values)
