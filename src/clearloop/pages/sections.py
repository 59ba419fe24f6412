"""The sections of a card: gains, eigenvalues, margins, robustness, costs, coverage, and the evidence."""

import hashlib
import io
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import clearloop
from clearloop.arrays import Floats
from clearloop.controllers import Controller, load
from clearloop.controllers.views import TIMES
from clearloop.data import Batch
from clearloop.diagnosis import (
    Diagnosis,
    Linearisation,
    LoggedMargins,
    Margins,
    Mode,
    compare_margins,
    diagnose,
    find_logged_margins,
    find_resting_margins,
)
from clearloop.diagnosis.terms import Experience
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate
from clearloop.exports import export
from clearloop.exports.comments import made_from
from clearloop.exports.targets import find_target
from clearloop.expression.pieces import Piece, Pieces
from clearloop.figures.style import SETTINGS
from clearloop.figures.trajectories import Outcomes, draw_start_maps
from clearloop.files import file_bytes
from clearloop.methods.linear_model import LinearModel, identify
from clearloop.methods.lqr import LQR, Design, design
from clearloop.methods.plant_answers import find_answers
from clearloop.numbers import (
    estimate,
    number,
    penalty_with_error,
    percent,
    plain,
    quantity,
    signed_estimate,
    true_minus,
)
from clearloop.pages.report import NOISE_SEED
from clearloop.pages.sentences import sentences
from clearloop.plants.scenarios import Scenarios
from clearloop.registry import TARGETS
from clearloop.runs import RunDirectory
from clearloop.runs.front import judging_starts
from clearloop.surrogate import Surrogate
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The parts of a card as plain data, from which both the page and the PDF are set.


@dataclass(frozen=True)
class Cell:
    """One cell of a table: text, or a piece of a formula."""

    content: str | Piece
    indent: int = 0
    strong: bool = False


@dataclass(frozen=True)
class CardTable:
    """A table of a card."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: tuple[int, ...] = ()
    """columns that are aligned to the right"""
    codes: tuple[int, ...] = ()
    """columns that are set like code, in small letters"""
    widths: tuple[str, ...] = ()
    """the width of each column: `auto`, or a share of the free room such as `1fr`"""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str | Piece | Cell]],
    *,
    numbers: Sequence[int] = (),
    codes: Sequence[int] = (),
    widths: Sequence[str] = (),
) -> CardTable:
    """Make a table whose cells may be given as text; without `widths`, all columns are `auto`."""
    cells = tuple(tuple(c if isinstance(c, Cell) else Cell(c) for c in row) for row in rows)
    return CardTable(
        tuple(header), cells, tuple(numbers), tuple(codes), tuple(widths) or ("auto",) * len(header)
    )


@dataclass(frozen=True)
class Section:
    """A part of a card with a title: sentences, a table, a figure, notes; each may be missing."""

    title: str
    lines: tuple[str, ...] = ()
    """sentences above the table"""
    table: CardTable | None = None
    figure: str = ""
    """the text of an SVG file"""
    caption: str = ""
    """what the figure shows; also its alternative text"""
    notes: tuple[str, ...] = ()
    """sentences in small print below"""


@dataclass(frozen=True)
class Card:
    """Everything that a card says."""

    title: str
    kind: str
    """the controller's kind and complexity, its task and its run"""
    name: str
    """the name in the controller file; may be empty"""
    equations: tuple[Pieces, ...]
    """the equation of each output, in pieces between which lines may break"""
    lines: tuple[str, ...]
    """sentences below the equations: units, limits, setpoints"""
    rows: tuple[tuple[tuple[Section, ...], ...], ...]
    """rows from top to bottom, each of one column of sections, or of two side by side"""
    signatures: tuple[str, ...] = field(default=("Made and checked by", "Approved by"))


def as_svg(figure: "Figure") -> str:
    """Return a figure as SVG with its letters as outlines, which looks the same on a page and in a PDF.

    The same figure gives the same text.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    with warnings.catch_warnings(), rc_context(SETTINGS | {"svg.fonttype": "path"}):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return file.getvalue()


# The controller that a card is about, with everything of its run that the card needs.


@dataclass(frozen=True, eq=False)
class Subject:
    """The controller of a card, and all that was found out about it."""

    name: str
    """the name of its file without the ending, such as `003`"""
    file: str
    """the name of its file"""
    controller: Controller
    """with the limits, units and setpoints of the task"""
    task: Task
    batch: Batch
    surrogate: Surrogate
    description: dict[str, Any]
    """the contents of `run.json`"""
    diagnosis: Diagnosis
    promised: Evaluation
    """on the judging models"""
    tested: Evaluation | None
    """on the plant; None if there is none"""
    model: LinearModel | ClearloopError
    """the linear model of the log, or the reason why there is none"""
    lqr: Design | ClearloopError
    """the LQR from the same log, or the reason why there is none"""
    fingerprint: str
    """SHA-256 of the controller's file"""
    run_fingerprint: str
    """SHA-256 of `run.json`"""
    origin: tuple[str, ...]
    """the lines in the head of an export that say what it was made from"""

    @property
    def experience(self) -> Experience:
        """The values of variables in the log and at the steady state."""
        linear, task = self.diagnosis.linearisation, self.task
        rest, aims = np.zeros(len(task.states)), np.zeros(len(task.states))
        for name, aim in self.diagnosis.controller.setpoint.items():
            rest[task.state_names.index(name)] = aims[task.state_names.index(name)] = aim
        action = np.zeros(len(task.actions))
        if linear is not None:
            rest, action, aims = linear.point, linear.action, linear.aims
        return Experience(task, self.batch, rest, action, aims)

    @property
    def margins(self) -> LoggedMargins | None:
        """The margins at the steady state of the system on which the controller was examined."""
        return self._margins[1]

    @property
    def logged_margins(self) -> LoggedMargins | None:
        """The margins by the linear model of the log, with what the log leaves unknown about them."""
        return self._margins[0]

    @cached_property
    def _margins(self) -> tuple[LoggedMargins | None, LoggedMargins | None]:
        """The margins by the linear model of the log, and those at rest."""
        linear, members = self.diagnosis.linearisation, self.diagnosis.by_member
        if linear is None:
            return None, None
        resting = find_resting_margins(self.controller, linear, members, self.batch)
        if isinstance(self.model, ClearloopError):
            return None, resting
        logged = find_logged_margins(self.controller, linear, self.model, self.batch)
        return compare_margins(logged, resting) if members else (logged, resting)


def examine(file: Path, run: RunDirectory) -> Subject:
    """Load the controller of a card and examine it; this takes some seconds.

    Raises:
        ClearloopError: The file holds a planner, or a controller of another task.
    """
    description = run.describe()
    task = run.task()
    controller = load(file)
    if controller.plans:
        raise ClearloopError(
            f"{file}: a planner searches for a new plan at every step: it has no law to sign"
        )
    try:
        controller = controller.for_task(task)
    except ClearloopError as error:
        raise ClearloopError(f"{file}: {error}") from error
    batch = Batch.load(run.path / "batch.parquet", task)
    surrogate = Surrogate.load(run.path / "surrogate", task)
    scoring = judging_starts(run, task, batch) if task.start_box is None else Scenarios.scoring(task)
    model = _tried(lambda: identify(task, batch))
    return Subject(
        name=file.stem,
        file=file.name,
        controller=controller,
        task=task,
        batch=batch,
        surrogate=surrogate,
        description=description,
        diagnosis=diagnose(
            controller, task, batch=batch, surrogate=surrogate, rng=np.random.default_rng(NOISE_SEED)
        ),
        promised=evaluate(
            controller, task, surrogate=surrogate, members=surrogate.judge_members, starts=scoring
        ),
        tested=evaluate(controller, task) if task.scorable else None,
        model=model,
        lqr=_tried(
            lambda: design(task, batch, LQR(), model=None if isinstance(model, ClearloopError) else model)
        ),
        fingerprint=hashlib.sha256(file.read_bytes()).hexdigest(),
        run_fingerprint=hashlib.sha256((run.path / "run.json").read_bytes()).hexdigest(),
        origin=tuple(made_from(file, run.path)),
    )


def _tried(make: Any) -> Any:
    """Return what `make` returns, or the error that says why it cannot."""
    try:
        return make()
    except ClearloopError as error:
        return error


# The evidence: files, code, data and versions, each with its hash.


def evidence(subject: Subject) -> Section:
    """Return the section that lists the data, the controller file, the exports and the run."""
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
        [
            "run",
            f"begun {description.get('begun', 'at an unknown time')}, {versions}{made}",
            subject.run_fingerprint,
        ],
    ]
    return Section(
        "Evidence",
        table=table(["", "", "SHA-256"], rows, widths=["auto", "1fr", "auto"], codes=[2]),
        notes=(
            "The exports are the files that 'clearloop export' writes with --run, --out and these names, and "
            "without options.",
        ),
    )


def _exports(subject: Subject) -> list[tuple[str, str]]:
    """Return the files of each target that takes such a controller, each with the hash of its text."""
    found: list[tuple[str, str]] = []
    for target in TARGETS:
        try:
            if find_target(target).built:
                continue  # its bytes are those of a compiler
            name = f"controller_{subject.name}"
            files = export(subject.controller, to=target, name=name, origin=subject.origin)
        except ClearloopError:
            continue  # this language is not for controllers of this kind
        found += [(file, hashlib.sha256(file_bytes(text)).hexdigest()) for file, text in files.items()]
    return found


# The controller away from its steady state: starts, disturbances, costs, coverage.

FIGURES = ("1fr", "auto", "auto", "auto")  # widths for a name and three columns of numbers


def _where(subject: Subject) -> str:
    return f"on the {subject.diagnosis.place}"


def _aims(subject: Subject) -> str:
    """Return a phrase with the setpoints, where they are columns of the log."""
    aims = subject.diagnosis.controller.setpoint
    said = [
        f"{name} {quantity(aims[name], subject.task.states[name].unit)}"
        for name in subject.controller.follows
        if name in aims
    ]
    return f", with the usual setpoint of the log: {', '.join(said)}" if said else ""


def starts(subject: Subject) -> Section:
    """Return the section with the map of the starts."""
    title, found = "Starts that fail", subject.diagnosis.starts
    if found is None:
        return Section(title, lines=(f"Not known: {subject.diagnosis.left_out['starts']}.",))
    outcomes = {f"{len(found.failed):,} starts {_where(subject)}": Outcomes(found.penalties, found.failed)}
    figure = draw_start_maps(subject.task, found.starts, outcomes)
    lost = f"crosses mark the {found.failed.sum():,} that fail" if found.failed.any() else "none fails"
    caption = f"The penalty from each start, {_where(subject)}{_aims(subject)}; {lost}."
    return Section(title, figure=as_svg(figure), caption=caption)


def robustness(subject: Subject) -> Section:
    """Return the section with the penalties under disturbances and the step responses."""
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
    steps = [
        f"A {step!r}, undershoot {plain(round(step.undershoot, 1))} %." for step in subject.diagnosis.steps
    ]
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
            "The noise is a share of each state's standard deviation in the log.",
            *steps,
        ),
    )


def costs(subject: Subject) -> Section:
    """Return the section with the promised penalty and the tested one."""
    rows = [_cost("promised by the model", subject.promised)]
    if subject.tested is None:
        rows.append(["tested", "not tested on a plant", "", ""])
    else:
        rows.append(_cost("tested on the plant", subject.tested))
    return Section(
        "Penalty",
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
    judges = f"The promise is the mean of {len(spread)} judging models, which the search did not use"
    if len(spread) > 1:
        judges += f"; they promise {number(float(spread.min()))} to {number(float(spread.max()))}"
    if subject.tested is None or subject.promised.penalty <= 0:
        return f"{judges}."
    more = subject.tested.penalty / subject.promised.penalty - 1
    words = f"{percent(abs(more))} {'more' if more >= 0 else 'less'}"
    return f"{judges}. On the plant it costs {words} than promised."


def coverage(subject: Subject) -> Section:
    """Return the section on how much of the controller's path lies outside the log."""
    title, found = "Outside the log", subject.diagnosis.coverage
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
            f"{percent(found.outside)} of the states that it visits on the model are outside the logged"
            f" region (1 % of the log itself is);"
            f" {percent(found.courses)} of its trajectories leave the region.",
        ),
        notes=(f"Outside the logged range of a single state: {'; '.join(beyond)}.",) if beyond else (),
    )


# The closed loop for small deviations: gains at the steady state beside those of LQR, eigenvalues, margins.

MOST_MODES = 4  # that are listed, the slowest first
_NONE = "—"


def gains(subject: Subject) -> Section:
    """Return the section with the gains of the controller at the operating point, beside those of LQR."""
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
        notes.append("Now: the gain on the present value alone. Held: the gain on a lasting deviation.")
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
    said = "The steady state is" if linear.at_rest else "It does not rest at its setpoint. Gains are those at"
    return f"{said} {', '.join(where)}, with {', '.join(acts)}."


def _clean(values: Floats) -> Floats:
    """Return the values with 0 for those that differ from it only by rounding."""
    return np.where(np.abs(values) < 1e-9, 0.0, values)


def small_deviations(subject: Subject) -> Section:
    """Return the section with the eigenvalues and the margins of the closed loop."""
    title, linear = "Small deviations", subject.diagnosis.linearisation
    why = f"it {linear!r}" if linear else subject.diagnosis.left_out.get("linearisation", "")
    logged, examined = subject.logged_margins, subject.margins
    columns: dict[str, dict[str, str]] = {}
    if logged is not None and logged.margins is not None:
        columns["linear model of the log"] = _values(logged.margins, subject.task.dt, logged.unknown)
    if examined is not None and examined.margins is not None:
        columns[f"{subject.diagnosis.place} at rest"] = _values(
            examined.margins, subject.task.dt, examined.unknown
        )
    notes = []
    if examined is not None and examined.why:
        notes.append(sentences(f"unknown where the models rest: {examined.why}"))
    if logged is not None and logged.why:
        notes.append(sentences(f"unknown by the linear model of the log: {logged.why}"))
    if isinstance(subject.model, ClearloopError):
        notes.append(f"No linear model of the log: {subject.model}.")
    if not columns:
        return Section(title, lines=(f"No eigenvalues and margins: {why}.",), notes=tuple(notes))
    labels = dict.fromkeys(label for column in columns.values() for label in column)
    rows = [[label, *(column.get(label, _NONE) for column in columns.values())] for label in labels]
    notes.append("The limits of the actions are left out.")
    return Section(
        title,
        table=table(
            ["", *columns], rows, numbers=range(1, 1 + len(columns)), widths=["1fr"] + ["auto"] * len(columns)
        ),
        notes=tuple(notes),
    )


def plant(subject: Subject) -> Section:
    """Return the section on what the plant does, by the linear model of the log."""
    title = "The plant, by the linear model of the log"
    if isinstance(subject.model, ClearloopError):
        return Section(title, lines=(f"Not known: {subject.model}.",))
    return Section(title, lines=tuple(answer.words for answer in find_answers(subject.model)))


def _values(margins: Margins, dt: float, unknown: Collection[tuple[str, str]] = ()) -> dict[str, str]:
    """Return the rows of a column; `unknown` names margins by action and name."""
    shown = {"": "stable" if margins.stable else "UNSTABLE"}
    for place, mode in enumerate(margins.modes[:MOST_MODES], 1):
        shown[f"eigenvalue {place}"] = _mode(mode)
    slowest = margins.modes[0].time_constant if margins.modes else None
    if slowest:
        shown["time constant"] = quantity(slowest, "s") if slowest > 0 else f"grows in {-slowest:.3g} s"
    damped = [mode.damping for mode in margins.modes if mode.damping is not None]
    if margins.modes:
        shown["least damping"] = number(min(damped)) if damped else "no oscillation"
    for margin in margins.actions:
        of = f", {margin.action}" if len(margins.actions) > 1 else ""
        up, down, late = margin.gain_up, margin.gain_down, margin.delay
        said = {
            "gain_up": ("gain margin, up", f"{TIMES} {number(up)}" if up is not None else "any"),
            "gain_down": ("gain margin, down", f"{TIMES} {number(down)}" if down is not None else "any"),
            "phase": ("phase margin", f"{number(margin.phase)}°" if margin.phase is not None else "any"),
            "delay": (
                "delay margin",
                "any" if late is None else f"{number(late, 3)} s ({late / dt:.1f} steps)",
            ),
        }
        for name, (label, value) in said.items():
            shown[f"{label}{of}"] = "unknown" if (margin.action, name) in unknown else value
    return shown


def _mode(mode: Mode) -> str:
    imaginary = f" ± {mode.value.imag:.4f}i" if abs(mode.value.imag) > 5e-5 else ""
    return true_minus(f"{mode.value.real:.4f}{imaginary}")
