"""The verdict on an export: it and the original run on the same test vectors, and actions are compared."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.controllers.routine import Routine
from clearloop.data import Batch
from clearloop.data.log import setpoint_rows
from clearloop.errors import ClearloopError
from clearloop.exports.guard import routine_of
from clearloop.exports.lowering import lower
from clearloop.exports.spans import PRECISIONS, Precision
from clearloop.exports.targets import Files, export, find_target
from clearloop.expression import Variable
from clearloop.files import file_bytes, whole_file
from clearloop.plants.cosimulation import CoSimulation
from clearloop.registry import TARGETS, resolve
from clearloop.task import Task
from clearloop.verification.bounds import Inputs
from clearloop.verification.st import Block
from clearloop.verification.supervision import broken, expect_guarded
from clearloop.verification.testbench import FLAGS, c_bench, plc_bench, vectors_csv
from clearloop.verification.vectors import Amount, Episode, Expectation, expect, representable, vectors

# Exported Structured Text is read from its file and interpreted, as a PLC would do it.

_SPACES = {"": "http://www.plcopen.org/xml/tc6_0201", "x": "http://www.w3.org/1999/xhtml"}
_SECTIONS = {"inputVars": "VAR_INPUT", "outputVars": "VAR_OUTPUT", "localVars": "VAR", "tempVars": "VAR_TEMP"}


def run_structured_text(trial: "BenchTrial") -> NDArray[np.float64]:
    """Run an export to Structured Text, write the bench for the PLC beside it, and return actions [N, A]."""
    bench = plc_bench(
        trial.controller, trial.routine, trial.name, trial.precision, trial.expectation, trial.options
    )
    trial.write(f"{Path(trial.main).stem}_bench.st", bench)
    text = (trial.folder / trial.main).read_text(encoding="utf-8")
    return run_text(text, trial.routine, trial.episodes)


def run_plcopen(trial: "BenchTrial") -> NDArray[np.float64]:
    """Run the Structured Text in an export to PLCopen XML, and return actions [N, A]."""
    text = text_of_project((trial.folder / trial.main).read_text(encoding="utf-8"))
    return run_text(text, trial.routine, trial.episodes)


def run_text(text: str, routine: Routine, episodes: Sequence[Episode]) -> NDArray[np.float64]:
    """Run a text on test vectors, with inputs in the order of the routine, and return actions [N, A]."""
    block = Block(text)
    rows = []
    for episode in episodes:
        block.reset()
        for values in episode:
            given = [
                bool(values[one.variable]) if one.flag else values[one.variable] for one in routine.inputs
            ]
            answer = block.step(dict(zip(block.inputs, given, strict=False)))
            rows.append([float(answer[name]) for name in block.outputs])
    return np.array(rows, dtype=float)


def text_of_project(xml: str) -> str:
    """Return the Structured Text that the elements of a PLCopen file contain."""
    project = fromstring(xml)  # noqa: S314 - our own file
    return "\n".join(map(_unit, project.iterfind("types/pous/pou", _SPACES)))


def _unit(pou: Element) -> str:
    interface, result = _only(pou, "interface"), pou.find("interface/returnType", _SPACES)
    kind = "FUNCTION_BLOCK" if result is None else "FUNCTION"
    lines = [f"{kind} {pou.get('name')}" + ("" if result is None else f" : {_name(result[0])}")]
    for variables in interface:
        if _name(variables) in _SECTIONS:
            constant = " CONSTANT" if variables.get("constant") == "true" else ""
            lines += [_SECTIONS[_name(variables)] + constant, *map(_declaration, variables), "END_VAR"]
    return "\n".join([*lines, _only(pou, "body/ST/x:xhtml").text or "", f"END_{kind}"])


def _declaration(variable: Element) -> str:
    kind = _only(variable, "type")[0]
    text = _name(kind)
    if text == "array":
        edges = _only(kind, "dimension")
        text = f"ARRAY [{edges.get('lower')}..{edges.get('upper')}] OF {_name(_only(kind, 'baseType')[0])}"
    values = [one.get("value", "") for one in variable.iterfind("initialValue//simpleValue", _SPACES)]
    if variable.find("initialValue/arrayValue", _SPACES) is not None:
        text += f" := [{', '.join(values)}]"
    elif values:
        text += f" := {values[0]}"
    return f"{variable.get('name')} : {text};"


def _only(parent: Element, path: str) -> Element:
    found = parent.find(path, _SPACES)
    if found is None:
        raise ValueError(f"no {path} in {parent.tag}")
    return found


def _name(element: Element) -> str:
    return element.tag.partition("}")[2]


# Exported code in other languages is run by compilers and interpreters in processes of their own.

_LONGEST = 600  # seconds
Actions = NDArray[np.float64]  # [N, A]


@dataclass(frozen=True, kw_only=True)
class BenchTrial:
    """An export in a folder with its test vectors, which the verifier of a target runs.

    Attributes:
        folder: The folder, which also contains `vectors.csv`.
        files: The names of the export's files, the main one first.
        controller: The controller that was exported.
        routine: Its routine.
        name: The name of the export, as the user gave it.
        precision: The precision of the export.
        expectation: The test vectors, and the expected actions.
        options: The options of the export.
    """

    folder: Path
    files: Sequence[str]
    controller: Controller
    routine: Routine
    name: str
    precision: Precision
    expectation: Expectation
    options: frozenset[str] = frozenset()

    @property
    def main(self) -> str:
        """The name of the main file."""
        return self.files[0]

    @property
    def episodes(self) -> Sequence[Episode]:
        """The test vectors: the value of each input, for each episode and step."""
        return self.expectation.episodes

    def write(self, file: str, content: str | bytes) -> None:
        """Put a file, such as a test bench, beside the export."""
        with whole_file(self.folder / file) as opened:
            opened.write(file_bytes(content))


_NODE = """
import { readFileSync } from "node:fs";
const { reset, act } = await import(process.argv.at(-1));
const rows = [];
for (const episode of JSON.parse(readFileSync(0, "utf8"))) {
  const memory = reset();
  for (const [seen, setpoint] of episode) { rows.push(Object.values(act(seen, memory, setpoint))); }
}
console.log(JSON.stringify(rows));
"""

_PYTHON = """
import json, runpy, sys
module = runpy.run_path(sys.argv[1])
rows = []
for episode in json.load(sys.stdin):
    memory = module["reset"]()
    for observation, setpoint in episode:
        rows.append(list(module["act"](observation, memory, setpoint).values()))
print(json.dumps(rows))
"""


def run_c(trial: BenchTrial) -> Actions:
    """Compile and run an export to C with the bench that the engineer gets, and return actions [N, A]."""
    trial.write(*c_bench(trial.routine, trial.name, trial.precision, trial.expectation.tolerance))
    compiler = _tool("gcc", "cc", "clang")
    stem = Path(trial.main).stem
    sources = [f"{stem}.c", f"{stem}_bench.c"]
    with TemporaryDirectory() as folder:
        program, actions = str(Path(folder) / "bench"), str(Path(folder) / "actions.csv")
        _call([compiler, *FLAGS, *sources, "-lm", "-o", program], trial.folder)
        _call([program, "vectors.csv", actions], trial.folder, answers=(0, 1))
        text = Path(actions).read_text()
    return np.array([[float(cell) for cell in line.split(",")] for line in text.splitlines()])


def run_javascript(trial: BenchTrial) -> Actions:
    """Run an export to JavaScript with node, and return actions [N, A]."""
    command = [_tool("node"), "--input-type=module", "-e", _NODE, "--"]
    return _scripted([*command, (trial.folder.resolve() / trial.main).as_uri()], trial)


def run_python(trial: BenchTrial) -> Actions:
    """Run an export to Python in another process, and return actions [N, A]."""
    return _scripted([sys.executable, "-I", "-c", _PYTHON, str(trial.folder.resolve() / trial.main)], trial)


def run_fmu(trial: BenchTrial) -> Actions:
    """Run an FMU in another process, as a simulator would, and return actions [N, A]."""
    inputs = [one.variable for one in trial.routine.inputs]
    outputs = [str(output.action) for output in trial.routine.outputs]
    outputs += [str(report.target) for report in trial.routine.reports]
    rows, step = [], trial.controller.dt or 1.0
    file = trial.folder / trial.main
    with CoSimulation(file, inputs=[*map(str, inputs)], outputs=outputs, step=step) as unit:
        for episode in trial.episodes:
            unit.begin()
            rows += [unit.advance([values[name] for name in inputs]) for values in episode]
    return np.array(rows, dtype=float)


def _scripted(command: list[str], trial: BenchTrial) -> Actions:
    """Run a script, which gets the vectors on standard input and prints the actions."""
    sent = [[arguments_of(inputs) for inputs in episode] for episode in trial.episodes]
    answer = json.loads(_call(command, trial.folder, json.dumps(sent)))
    rows = [[float("nan") if value is None else value for value in row] for row in answer]
    return np.array(rows, dtype=float)


def arguments_of(inputs: Inputs) -> tuple[dict[str, float], dict[str, float]]:
    """Return the arguments of `act` for some inputs: an observation and setpoints."""
    pair: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for variable, value in inputs.items():
        pair[variable.part == "setpoint"][variable.name] = value
    return pair


def _tool(*names: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise ClearloopError(f"{names[0]} is not installed: install it, or verify another target")


def _call(command: list[str], folder: Path, sent: str = "", answers: tuple[int, ...] = (0,)) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, input=sent, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClearloopError(f"{name} took longer than {_LONGEST} s on the export") from error
    if done.returncode not in answers:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[0]
        raise ClearloopError(f"{name} failed on the export ({done.returncode}): {last}")
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a comparison between an export and its controller.

    Attributes:
        to: The target.
        precision: "double" or "single".
        options: The options of the block that was tested.
        vectors: The number of steps that were compared.
        left_out: The number of steps in which the last places of a number decide about the action.
        guarded: The number of steps that were compared with the guard, among them broken sensors.
        difference: The largest difference of an action, relative to its range.
        tolerance: The largest allowed difference.
    """

    to: str
    precision: str
    options: tuple[str, ...] = ()
    vectors: int
    left_out: int
    guarded: int = 0
    difference: float
    tolerance: float

    @property
    def equal(self) -> bool:
        """True if the difference is allowed."""
        return self.difference <= self.tolerance


def verify(
    controller: Controller,
    *,
    to: str,
    folder: Path,
    rng: np.random.Generator,
    name: str = "controller",
    precision: str = "double",
    log: Sequence[Episode] = (),
    amount: Amount | None = None,
    options: Collection[str] = (),
    origin: Collection[str] = (),
) -> Verdict:
    """Export a controller to a folder, run the export and the controller on test vectors, and compare.

    A block that can guard itself is run twice: without its guard and its modes beside the controller, and as
    it was asked for beside the guard in plain Python, with broken sensors and changing modes.

    Args:
        controller: The controller, with its limits and units.
        to: The name of a target.
        folder: The folder, which gets the export, the test vectors and the test bench.
        rng: The source of random test vectors.
        name: The name of the export.
        precision: "double", or "single" if the target has it.
        log: Episodes of inputs that are tried, too; random inputs have their magnitudes.
        amount: The amount of test vectors.
        options: Options of the target, such as "manual".
        origin: Lines for the head of the text that say what it was made from.

    Returns:
        The verdict.

    Raises:
        ClearloopError: If the controller cannot be exported, or if the export cannot be run.
    """
    run, guards, asked = find_verifier(to), find_target(to).guards, frozenset(options)
    exact, law = PRECISIONS[precision], lower(controller)
    words: dict[str, Any] = {"to": to, "name": name, "precision": precision}
    files = export(controller, **words, options=asked, origin=origin)
    made = vectors(law, exact, rng=rng, amount=amount or Amount(), scales=_scales(log))
    episodes = [*(representable(episode, exact) for episode in log), *made]
    expectation = expect(controller, law, episodes, exact)

    begun = partial(BenchTrial, controller=controller, name=name, precision=exact)
    guarded: Expectation | None = None
    if guards:
        bare = export(controller, **words, without=["guard"])
        with TemporaryDirectory() as other:
            trial = begun(folder=Path(other), files=list(bare), routine=law, expectation=expectation)
            difference = _difference(trial, bare, run)
        routine = routine_of(controller, asked, guard=True)
        more = _with_guard(routine, episodes)
        more += broken(routine, controller, exact, rng=rng, count=_BROKEN_EPISODES)
        guarded = expect_guarded(controller, routine, more, exact, asked)
        trial = begun(folder=folder, files=list(files), routine=routine, expectation=guarded, options=asked)
        difference = max(difference, _difference(trial, files, run))
    else:
        trial = begun(folder=folder, files=list(files), routine=law, expectation=expectation)
        difference = _difference(trial, files, run)
    return Verdict(
        to=to,
        precision=precision,
        options=tuple(sorted(asked)),
        vectors=int(expectation.compared.sum()),
        left_out=int((~expectation.compared).sum()),
        guarded=int(guarded.compared.sum()) if guarded else 0,
        difference=difference,
        tolerance=expectation.tolerance,
    )


def _difference(trial: BenchTrial, files: Files, run: Callable[[BenchTrial], Actions]) -> float:
    """Write an export with its test vectors, run it, and return its largest difference.

    Args:
        trial: The trial, whose folder the files come to.
        files: The export.
        run: The verifier of its target.
    """
    rows = vectors_csv(trial.routine, trial.expectation)
    for file, content in {**files, "vectors.csv": rows}.items():
        trial.write(file, content)
    found, wanted = np.asarray(run(trial), dtype=float), trial.expectation.actions
    if found.shape != wanted.shape:
        raise ClearloopError(f"the exported code returned {len(found)} actions for {len(wanted)} steps")
    return trial.expectation.difference(found)


_BROKEN_EPISODES = 10


def _with_guard(routine: Routine, episodes: Sequence[Episode]) -> list[Episode]:
    """Return episodes for a guarded routine, whose other inputs are as they are at first."""
    first = {one.variable: one.default for one in routine.inputs if one.default is not None}
    return [[{**first, **step} for step in episode] for episode in episodes]


def find_verifier(to: str) -> Callable[[BenchTrial], Actions]:
    """Return the function that runs the code of a target on test vectors.

    Raises:
        ClearloopError: If the target has no such function, or if it cannot be loaded.
    """
    target = find_target(to)
    if not target.verifier:
        can = ", ".join(one.name for one in TARGETS.working() if one.verifier)
        raise ClearloopError(
            f"--to {to}: {target.title} has no verifier, so its exports cannot be verified; "
            f"these can be: {can}"
        )
    try:
        found: Callable[[BenchTrial], Actions] = resolve(target.verifier)
    except Exception as error:  # whatever another package does wrong
        reason = f"{type(error).__name__}: {error}"
        raise ClearloopError(f"--to {to}: {target.verifier} cannot be loaded: {reason}") from error
    return found


def _scales(log: Sequence[Episode]) -> dict[Variable, float]:
    """Return the usual magnitude of each input."""
    sizes: dict[Variable, list[float]] = {}
    for episode in log:
        for step in episode:
            for name, value in step.items():
                sizes.setdefault(name, []).append(abs(value))
    return {name: max(float(np.median(values)), 1e-9) for name, values in sizes.items()}


_MOST_ROWS = 2_000  # of a log


def logged(routine: Routine, task: Task, batch: Batch) -> list[Episode]:
    """Return episodes from all over a log as test vectors, some thousand rows together."""
    aims = setpoint_rows(task, batch.setpoints, len(batch.states))
    every = max(len(batch.states) // _MOST_ROWS, 1)
    episodes: list[Episode] = []
    for number in range(0, batch.episode_count, every):
        rows = np.flatnonzero(batch.episodes == number)[:_MOST_ROWS]
        columns = {
            one.variable: _column(one.variable, batch.states[rows], aims[rows], task, one.default)
            for one in routine.inputs
        }
        episodes.append([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    return episodes


def _column(
    variable: Variable, states: Floats, aims: Floats, task: Task, default: float | None
) -> list[float]:
    """Return the values of an input in the rows of a log; a constant setpoint is the controller's own."""
    table = states if variable.part == "value" else aims
    if variable.part == "setpoint" and default is not None:
        return [default] * len(states)
    column: list[float] = table[:, task.state_names.index(variable.name)].tolist()
    return column
