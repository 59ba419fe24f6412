"""A pack is a zip with everything that a second person needs to check a controller without clearloop.

It has the controller, its task, all exports, test vectors with the expected actions, the card, hashes, and
`check.py`, which needs nothing but Python. The same controller and run give the same bytes.
"""

import hashlib
import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

import clearloop
from clearloop.controllers import Controller, load
from clearloop.controllers.file import to_json
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.exports import DOUBLE, export, lower
from clearloop.exports.comments import harmless, hashed
from clearloop.exports.targets import find_target
from clearloop.files import file_bytes, whole_file, zipped
from clearloop.pages.card import contents, to_html
from clearloop.registry import TARGETS
from clearloop.runs import RunDirectory
from clearloop.task import Task
from clearloop.verification.testbench import vectors_csv
from clearloop.verification.vectors import Amount, expect, vectors
from clearloop.verification.verdict import logged

_CHECK = Path(__file__).parent / "templates" / "check.py.txt"
_SEED = 0  # of the test vectors
_EXPORT = "controller"  # the name of the exports

_README = """{name}: a controller for {task}, packed by clearloop {version}

{words}

To check it:  python check.py     (Python 3.8 or later; nothing else is needed)

check.py        says "yes" if no file was changed and the exported law gives the expected actions
controller.json the controller, with its limits, units and setpoints
task.json       what is controlled, and to what end
card.html       the sheet to sign
exports/        the controller in every language that takes it
vectors.csv     test vectors with the actions of the controller; vectors.json says what the columns are
run.json        how the controller was learned; front.csv has all controllers of that run
manifest.json   the SHA-256 of every file, and the fingerprint of the data
LICENSE         the licence of clearloop
"""


def pack(controller: str | Path, run: str | Path, out: str | Path) -> str:
    """Write a pack, and return the SHA-256 of the zip.

    Args:
        controller: The controller's file.
        run: The directory of the run that it belongs to.
        out: The zip to write.

    Raises:
        ClearloopError: The controller cannot be exported, the run is damaged, or the zip cannot be written.
    """
    content = zipped(pack_files(Path(controller), RunDirectory(Path(run))))
    with whole_file(out) as file:
        file.write(content)
    return hashlib.sha256(content).hexdigest()


def pack_files(file: Path, run: RunDirectory) -> dict[str, bytes]:
    """Return the files of a pack by their paths, in the order in which they stand in the zip."""
    description, task = run.describe(), run.task()
    controller = load(file).for_task(task)
    found: dict[str, str | bytes] = {
        "controller.json": to_json(controller),
        "task.json": _json(description["task"]),
        "run.json": (run.path / "run.json").read_bytes(),
        "card.html": to_html(contents(file, run)),
        "LICENSE": _license(),
    }
    if (run.path / "front.csv").exists():
        found["front.csv"] = (run.path / "front.csv").read_bytes()
    exports = _exports(controller, [hashed(what, name, file_bytes(found[name])) for what, name in _HEAD])
    found |= {f"exports/{name}": text for name, text in exports.items()}
    found |= _vectors(controller, task, Batch.load(run.path / "batch.parquet", task))
    found["README.txt"] = _README.format(
        name=harmless(controller.name or file.stem),
        task=harmless(task.name),
        version=clearloop.__version__,
        words="\n".join(map(harmless, controller.words())),
    )
    files = {name: file_bytes(found[name]) for name in sorted(found)}
    manifest = _json(
        {
            "controller": harmless(file.name),
            "controller_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            "task": task.name,
            "data": description["data"],
            "versions": description["versions"],
            "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }
    ).encode()
    check = _CHECK.read_text(encoding="utf-8").replace("@PYTHON@", f"{_EXPORT}.py")
    check = check.replace("@MANIFEST@", hashlib.sha256(manifest).hexdigest())
    return {"check.py": check.encode(), "manifest.json": manifest, **files}


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


_HEAD = (("Controller file", "controller.json"), ("Run", "run.json"), ("Sign-off sheet", "card.html"))
"""The files of the pack that the head of every export names, with their hashes."""


def _exports(controller: Controller, origin: list[str]) -> dict[str, str | bytes]:
    """Return the files of every target that takes the controller; machine code is left out."""
    found: dict[str, str | bytes] = {}
    for name in TARGETS:
        try:
            options = ["sources-only"] if find_target(name).built else []
            found |= export(controller, to=name, name=_EXPORT, options=options, origin=origin)
        except ClearloopError:
            if name == "python":  # without it nothing can be checked
                raise
    return found


def _vectors(controller: Controller, task: Task, batch: Batch) -> dict[str, str]:
    """Return test vectors, with those from all over the log, and a description of the columns."""
    routine = lower(controller)
    made = vectors(routine, DOUBLE, rng=np.random.default_rng(_SEED), amount=Amount())
    expectation = expect(controller, routine, [*logged(routine, task, batch), *made], DOUBLE)
    inputs = [one.variable for one in (*routine.observed, *routine.parameters)]
    spans = {one.action.name: one.limits for one in routine.outputs}
    about = {
        "states": {str(one): one.name for one in inputs if one.part == "value"},
        "setpoints": {str(one): one.name for one in inputs if one.part == "setpoint"},
        "ranges": {name: span[1] - span[0] if span else None for name, span in spans.items()},
        "tolerance": expectation.tolerance,
    }
    return {"vectors.csv": vectors_csv(routine, expectation), "vectors.json": _json(about)}


def _license() -> str:
    """Return the licence of clearloop, from its installed package or from its source."""
    try:
        text = distribution("clearloop").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        source = Path(clearloop.__file__).parents[2] / "LICENSE"
        text = source.read_text(encoding="utf-8") if source.exists() else None
    if text is None:
        raise ClearloopError("the licence of clearloop is missing in this installation: install it again")
    return text
