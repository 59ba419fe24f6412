"""The sections of a card: what it is about, what it rests on, what the controller does, and its margins."""

import hashlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import clearloop
from clearloop.arrays import Floats
from clearloop.controllers import Controller, load
from clearloop.controllers.views import TIMES
from clearloop.data import Batch
from clearloop.diagnosis import Diagnosis, Linearisation, Margins, Mode, diagnose, find_margins
from clearloop.diagnosis.terms import Experience
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate
from clearloop.exports import export
from clearloop.expression.pieces import Piece, Pieces
from clearloop.figures.style import SETTINGS
from clearloop.figures.trajectories import Outcomes, draw_start_maps
from clearloop.methods.linear_model import LinearModel, identify
from clearloop.methods.lqr import LQR, Design, design
from clearloop.numbers import (
    estimate,
    number,
    penalty_with_error,
    percent,
    quantity,
    signed_estimate,
    true_minus,
)
from clearloop.plants.scenarios import Scenarios
from clearloop.registry import TARGETS
from clearloop.runs import RunDirectory
from clearloop.runs.front import judging_starts
from clearloop.surrogate import Surrogate
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# What a card is made of, as plain data: both the page and the PDF are set from these.


@dataclass(frozen=True)
class Cell:
    content: str | Piece
    indent: int = 0
    strong: bool = False


@dataclass(frozen=True)
class CardTable:
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: tuple[int, ...] = ()
    """columns that are aligned to the right"""
    codes: tuple[int, ...] = ()
    """columns that are set like code, in small letters"""
    widths: tuple[str, ...] = ()
    """of columns: `auto`, or a share such as `1fr`; all `auto` if none are given"""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str | Piece | Cell]],
    *,
    numbers: Sequence[int] = (),
    codes: Sequence[int] = (),
    widths: Sequence[str] = (),
) -> CardTable:
    cells = tuple(tuple(c if isinstance(c, Cell) else Cell(c) for c in row) for row in rows)
    return CardTable(
        tuple(header), cells, tuple(numbers), tuple(codes), tuple(widths) or ("auto",) * len(header)
    )


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[str, ...] = ()
    """sentences above the table"""
    table: CardTable | None = None
    figure: str = ""
    """SVG"""
    caption: str = ""
    """what the figure shows, for those who cannot see it"""
    notes: tuple[str, ...] = ()
    """in small print, below"""


@dataclass(frozen=True)
class Card:
    title: str
    kind: str
    """what it is, of which task and which run"""
    name: str
    """what its maker called it; perhaps nothing"""
    equations: tuple[Pieces, ...]
    """of each output: pieces between which lines may break"""
    lines: tuple[str, ...]
    """below the equations: units, limits, setpoints"""
    rows: tuple[tuple[tuple[Section, ...], ...], ...]
    """from top to bottom, each of one column of sections, or of two side by side"""
    signatures: tuple[str, ...] = field(default=("Made and checked by", "Approved by"))


# Figures of a card: SVG with its letters as outlines, which looks the same on a page and in a PDF.


def as_svg(figure: "Figure") -> str:
    """The same figure gives the same text."""
    from matplotlib import rc_context

    file = io.StringIO()
    with warnings.catch_warnings(), rc_context(SETTINGS | {"svg.fonttype": "path"}):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return file.getvalue()


# The controller that a card is about, with everything of its run that the card needs.

_SEED = 0  # of the noise, as in the report


@dataclass(frozen=True, eq=False)
class Subject:
    name: str
    """what to call it: 003, or the name of its file"""
    file: str
    """its name"""
    controller: Controller
    """with the limits, units and setpoints of the task"""
    task: Task
    batch: Batch
    description: dict[str, Any]
    """what `run.json` says"""
    diagnosis: Diagnosis
    promised: Evaluation
    tested: Evaluation | None
    """None: there is no plant"""
    model: LinearModel | ClearloopError
    """the linear model of the log, or why there is none"""
    lqr: Design | ClearloopError
    fingerprint: str
    """SHA-256 of the controller's file"""

    @property
    def experience(self) -> Experience:
        linear, task = self.diagnosis.linearisation, self.task
        rest, aims = np.zeros(len(task.states)), np.zeros(len(task.states))
        for name, aim in self.diagnosis.controller.setpoint.items():
            rest[task.state_names.index(name)] = aims[task.state_names.index(name)] = aim
        action = np.zeros(len(task.actions))
        if linear is not None:
            rest, action, aims = linear.point, linear.action, linear.aims
        return Experience(task, self.batch, rest, action, aims)

    def margins(self, *, logged: bool) -> Margins | None:
        """With the linear model of the log, or with the system where the loop rests."""
        linear = self.diagnosis.linearisation
        if linear is None or (logged and isinstance(self.model, ClearloopError)):
            return None
        return find_margins(linear, self.model if logged and isinstance(self.model, LinearModel) else None)


def examine(file: Path, run: RunDirectory) -> Subject:
    """Some seconds."""
    description = run.describe()
    task = run.task()
    controller = load(file)
    if controller.plans:
        raise ClearloopError(f"{file}: a planner searches anew at every step: there is nothing to sign")
    try:
        controller = controller.for_task(task)
    except ClearloopError as error:
        raise ClearloopError(f"{file}: {error}") from error
    batch = Batch.load(run.path / "batch.parquet", task)
    surrogate = Surrogate.load(run.path / "surrogate", task)
    scoring = judging_starts(run, task, batch) if task.start_box is None else Scenarios.scoring(task)
    return Subject(
        name=file.stem,
        file=file.name,
        controller=controller,
        task=task,
        batch=batch,
        description=description,
        diagnosis=diagnose(
            controller, task, batch=batch, surrogate=surrogate, rng=np.random.default_rng(_SEED)
        ),
        promised=evaluate(
            controller, task, surrogate=surrogate, members=surrogate.judge_members, starts=scoring
        ),
        tested=evaluate(controller, task) if task.scorable else None,
        model=_tried(lambda: identify(task, batch)),
        lqr=_tried(lambda: design(task, batch, LQR())),
        fingerprint=hashlib.sha256(file.read_bytes()).hexdigest(),
    )


def _tried(make: Any) -> Any:
    """What is made, or why it cannot be."""
    try:
        return make()
    except ClearloopError as error:
        return error


# What the card rests on: files, code, data and versions, each with what tells it from any other.


def evidence(subject: Subject) -> Section:
    description = subject.description
    asked, data = description["asked"], description["data"]
    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    same = description["versions"].get("clearloop") == clearloop.__version__
    made = "" if same else f"; this card: clearloop {clearloop.__version__}"
    source = ", ".join(asked.get("data", ())) or "the plant of the task"
    rows = [
        ["data", f"{data['summary']}, from {source}, seed {asked.get('seed', 0)}", data["fingerprint"]],
        ["controller", subject.file, subject.fingerprint],
        *(["export", name, digest] for name, digest in _exports(subject)),
        ["run", f"begun {description.get('begun', 'at a time that it does not say')}, {versions}{made}", ""],
    ]
    return Section(
        "What this rests on",
        table=table(["", "", "SHA-256"], rows, widths=["auto", "1fr", "auto"], codes=[2]),
        notes=("Exports: as 'clearloop export' writes them with --out and these names.",),
    )


def _exports(subject: Subject) -> list[tuple[str, str]]:
    """Each file of each target that takes such a controller, with the hash of its text."""
    found: list[tuple[str, str]] = []
    for target in TARGETS:
        try:
            files = export(subject.controller, to=target, name=f"controller_{subject.name}")
        except ClearloopError:
            continue  # this language is not for controllers of this kind
        found += [(file, hashlib.sha256(text.encode()).hexdigest()) for file, text in files.items()]
    return found


# What a controller does away from its rest: starts saved and lost, disturbances, costs, where it goes.

FIGURES = ("1fr", "auto", "auto", "auto")  # a name, and three columns of numbers


def _where(subject: Subject) -> str:
    return f"on the {subject.diagnosis.place}"


def _aims(subject: Subject) -> str:
    """The setpoints, where the log has many of them."""
    aims = subject.diagnosis.controller.setpoint
    said = [
        f"{name} {quantity(aims[name], subject.task.states[name].unit)}"
        for name in subject.controller.follows
        if name in aims
    ]
    return f", with the usual setpoint of the log: {', '.join(said)}" if said else ""


def starts(subject: Subject) -> Section:
    title, found = "Starts saved and lost", subject.diagnosis.starts
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['starts']}.",))
    outcomes = {f"{len(found.failed):,} starts {_where(subject)}": Outcomes(found.penalties, found.failed)}
    figure = draw_start_maps(subject.task, found.starts, outcomes)
    lost = f"crosses mark the {found.failed.sum():,} that fail" if found.failed.any() else "none fails"
    caption = f"Penalty by start, {_where(subject)}{_aims(subject)}; {lost}."
    return Section(title, figure=as_svg(figure), caption=caption)


def robustness(subject: Subject) -> Section:
    title, found = "Noise, delay and gain error", subject.diagnosis.robustness
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['robustness']}.",))
    rows = [["undisturbed", estimate(found.penalty), "", percent(found.failures)]]
    rows += [
        [
            true_minus(one.name),
            estimate(one.penalty),
            true_minus(signed_estimate(one.change, one.standard_error)),
            percent(one.failures),
        ]
        for one in found.disturbed
    ]
    steps = [f"A {step!r}, undershoot {step.undershoot:.3g} %." for step in subject.diagnosis.steps]
    return Section(
        title,
        table=table(
            ["", "penalty", "change", "failures"],
            rows,
            numbers=[1, 2, 3],
            widths=FIGURES,
        ),
        notes=(
            f"From {found.starts} starts {_where(subject)}{_aims(subject)}.",
            "Noise: of each state's spread in the log.",
            *steps,
        ),
    )


def costs(subject: Subject) -> Section:
    rows = [_cost("promised by the model", subject.promised)]
    if subject.tested is None:
        rows.append(["tested", "not tested on a plant", "", ""])
    else:
        rows.append(_cost("tested on the plant", subject.tested))
    return Section(
        "What it costs",
        table=table(
            ["", "penalty", "failures", "starts"],
            rows,
            numbers=[1, 2, 3],
            widths=FIGURES,
        ),
        notes=(_compared(subject),),
    )


def _cost(name: str, found: Evaluation) -> list[str]:
    return [
        name,
        penalty_with_error(found.penalty, found.standard_error),
        percent(found.failures),
        f"{found.penalties.shape[1]:,}",
    ]


def _compared(subject: Subject) -> str:
    spread = subject.promised.penalties.mean(axis=1)
    judges = f"The promise is the mean of {len(spread)} models that judge, which the search did not use"
    if len(spread) > 1:
        judges += f"; they say {number(float(spread.min()))} to {number(float(spread.max()))}"
    if subject.tested is None or subject.promised.penalty <= 0:
        return f"{judges}."
    more = subject.tested.penalty / subject.promised.penalty - 1
    return f"{judges}. The plant costs {percent(abs(more))} {'more' if more >= 0 else 'less'} than promised."


def coverage(subject: Subject) -> Section:
    title, found = "Where it goes", subject.diagnosis.coverage
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['coverage']}.",))
    beyond = [
        f"{name} below {percent(float(low))}, above {percent(float(high))}"
        for name, (low, high) in zip(subject.task.state_names, found.beyond, strict=True)
        if max(low, high) >= 5e-4
    ]
    return Section(
        title,
        lines=(
            f"{percent(found.outside)} of its path on the model is outside the logged data;"
            f" {percent(found.courses)} of its courses leave it at some time. Of the log itself, 1 %.",
        ),
        notes=(f"Outside the logged range of one state alone: {'; '.join(beyond)}.",) if beyond else (),
    )


# The loop for small deviations: gains where it rests, beside LQR's; eigenvalues and margins.

MOST_MODES = 4  # that are listed, the slowest first
_NONE = "—"


def gains(subject: Subject) -> Section:
    linear, task = subject.diagnosis.linearisation, subject.task
    title = "Gains at the operating point"
    if linear is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out.get('linearisation', '')}.",))
    own = linear.law
    other = subject.lqr.law if isinstance(subject.lqr, Design) else None
    memory = any(law is not None and law[:, 1:].any() for law in (own, other))
    columns = [_columns(law, memory, len(task.states)) for law in (own, other) if law is not None]
    names = ["this", *(["LQR"] if other is not None else [])]
    kinds = ["now", "held"] if memory else [""]
    header = ["", *(f"{name} {kind}".rstrip() for name in names for kind in kinds)]
    rows = []
    for a, action in enumerate(task.action_names):
        for j, state in enumerate(task.state_names):
            per = f"{_unit(task.actions[action].unit)} per {_unit(task.states[state].unit)}"
            of = f"{action} by {state}" if len(task.actions) > 1 else state
            values = [number(column[a, j]) for law in columns for column in law]
            rows.append([f"{of} ({per})", *values])
    notes = []
    if memory:
        notes.append("Now: of the present value alone. Held: of a deviation that has lasted.")
    if isinstance(subject.lqr, ClearloopError):
        notes.append(f"No LQR to compare with: {subject.lqr}.")
    return Section(
        title,
        lines=(_place(linear),),
        table=table(
            header, rows, numbers=range(1, len(header)), widths=["1fr"] + ["auto"] * (len(header) - 1)
        ),
        notes=tuple(notes),
    )


def _unit(unit: str) -> str:
    return unit or "1"


def _columns(law: Floats, memory: bool, states: int) -> list[Floats]:
    now, held = law[:, 0, :states], law.sum(axis=1)[:, :states]
    return [now, held] if memory else [now]


def _place(linear: Linearisation) -> str:
    task = linear.task
    where = [
        f"{name} = {quantity(float(value) + 0.0, task.states[name].unit)}"
        for name, value in zip(task.state_names, _clean(linear.point), strict=True)
    ]
    acts = [
        f"{name} = {quantity(float(value) + 0.0, task.actions[name].unit)}"
        for name, value in zip(task.action_names, _clean(linear.action), strict=True)
    ]
    said = "It rests at" if linear.at_rest else "It does not rest at its setpoint. Gains are those at"
    return f"{said} {', '.join(where)}, with {', '.join(acts)}."


def _clean(values: Floats) -> Floats:
    """Without what rounding left of zero."""
    return np.where(np.abs(values) < 1e-9, 0.0, values)


def small_deviations(subject: Subject) -> Section:
    title, linear = "Small deviations", subject.diagnosis.linearisation
    why = f"it {linear!r}" if linear else subject.diagnosis.left_out.get("linearisation", "")
    found = {
        "linear model of the log": subject.margins(logged=True),
        f"{subject.diagnosis.place} where it rests": subject.margins(logged=False),
    }
    known = {name: margins for name, margins in found.items() if margins is not None}
    notes = []
    if not known:
        return Section(title, lines=(f"No eigenvalues and margins: {why}.",))
    if isinstance(subject.model, ClearloopError):
        notes.append(f"No linear model of the log: {subject.model}.")
    columns = [_values(margins, subject.task.dt) for margins in known.values()]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [[label, *(column.get(label, _NONE) for column in columns)] for label in labels]
    notes.append("Limits of the actions are not in it.")
    return Section(
        title,
        table=table(
            ["", *known], rows, numbers=range(1, 1 + len(known)), widths=["1fr"] + ["auto"] * len(known)
        ),
        notes=tuple(notes),
    )


def _values(margins: Margins, dt: float) -> dict[str, str]:
    shown = {"": "stable" if margins.stable else "UNSTABLE"}
    for place, mode in enumerate(margins.modes[:MOST_MODES], 1):
        shown[f"eigenvalue {place}"] = _mode(mode)
    slowest = margins.modes[0].time_constant
    if slowest:
        shown["time constant"] = quantity(slowest, "s") if slowest > 0 else f"grows in {-slowest:.3g} s"
    damped = [mode.damping for mode in margins.modes if mode.damping is not None]
    shown["least damping"] = number(min(damped)) if damped else "nothing swings"
    for margin in margins.actions:
        of = f", {margin.action}" if len(margins.actions) > 1 else ""
        up, down = margin.gain_up, margin.gain_down
        shown[f"gain margin, up{of}"] = f"{TIMES} {number(up)}" if up is not None else "any"
        shown[f"gain margin, down{of}"] = f"{TIMES} {number(down)}" if down is not None else "any"
        shown[f"phase margin{of}"] = f"{number(margin.phase)}°" if margin.phase is not None else "any"
        late = margin.delay
        shown[f"delay margin{of}"] = "any" if late is None else f"{number(late, 3)} s ({late / dt:.1f} steps)"
    return shown


def _mode(mode: Mode) -> str:
    imaginary = f" ± {mode.value.imag:.4f}i" if abs(mode.value.imag) > 5e-5 else ""
    return true_minus(f"{mode.value.real:.4f}{imaginary}")
