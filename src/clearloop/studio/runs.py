"""The folder of runs: what each came to, its front, its report."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

from clearloop.errors import ClearloopError
from clearloop.files import file_name
from clearloop.report.sentences import headline, rounded
from clearloop.runs import Front, RunDirectory, read_trust
from clearloop.runs.ledger import Found
from clearloop.runs.tables import read_table
from clearloop.studio.guarding import RefusedError, checked_name, inside

SILENT = 120.0  # seconds without a new file, after which a run that nobody here began is taken for dead
STATUS = {"finished": "finished", "interrupted": "stopped", "refused": "failed"}


class Runs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}

    def free_name(self, task: str) -> str:
        """`cartpole-3`: nothing has it yet."""
        stem, number = file_name(task), 1
        while (self.folder / f"{stem}-{number}").exists():
            number += 1
        return f"{stem}-{number}"

    def report(self, name: str) -> Path:
        path = inside(self.folder, checked_name(name, "a run"), "report.html")
        if not path.is_file():
            raise RefusedError(404, f"run '{name}' has no report")
        return path

    def list(self) -> list[dict[str, Any]]:
        """JSON values, the newest first; what cannot be read is left out."""
        found = []
        for path in self.folder.glob("[A-Za-z0-9]*/run.json"):
            try:
                found.append(self.about(path.parent.name))
            except (ClearloopError, OSError):
                continue
        return sorted(found, key=lambda one: str(one["when"]), reverse=True)

    def about(self, name: str) -> dict[str, Any]:
        """What one came to, as JSON values."""
        file = inside(self.folder, checked_name(name, "a run"), "run.json")
        try:
            changed = file.stat().st_mtime
        except OSError as error:
            raise RefusedError(404, f"no run '{name}'") from error
        if self._known.get(name, (0.0,))[0] != changed:
            try:
                self._known[name] = (changed, self._read(name, changed))
            except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
                raise ClearloopError(f"run '{name}': damaged") from error
        about = dict(self._known[name][1])
        if about["status"] == "running":
            silent = time() - _latest(file.parent) > SILENT
            about |= {"status": "stopped" if silent else "running", "front": self._candidates(name)}
        return about | {"report": f"/runs/{name}/report.html" if self._has_report(name) else None}

    def _read(self, name: str, changed: float) -> dict[str, Any]:
        run = RunDirectory(inside(self.folder, name))
        description = run.describe()
        status = STATUS.get(str(description["status"]), "running")
        about: dict[str, Any] = {
            "name": name,
            "status": status,
            "task": str(description["task"]["name"]),
            "when": datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds"),
            "headline": f"clearloop {description['asked'].get('command')}",
            "front": [],
        }
        if status == "failed":
            about["headline"] = str(description["doubts"][0]["message"])
        if status == "finished" and (run.path / "front.csv").exists():
            front = Front.read(run)
            about["headline"] = headline(front, *read_trust(run, description))
            about["front"] = _front(front)
        return about

    def _has_report(self, name: str) -> bool:
        try:
            return self.report(name).is_file()
        except ClearloopError:
            return False

    def _candidates(self, name: str) -> Sequence[dict[str, Any]]:
        """What a search that is going on has found so far; nothing before the first, and after the end."""
        try:
            found = read_table(inside(self.folder, name, "candidates.csv"), Found)
        except ClearloopError:
            return []
        return [
            {
                "controller": None,
                "method": row.method,
                "complexity": row.complexity,
                "penalty_model": row.penalty,
                "penalty_system": None,
                "formula": rounded(row.formula),
                "pick": False,
            }
            for row in found
        ]


def _front(front: Front) -> list[dict[str, Any]]:
    return [
        {
            "controller": entry.controller,
            "method": entry.method,
            "complexity": entry.complexity,
            "penalty_model": entry.penalty_model,
            "penalty_system": entry.penalty_system,
            "formula": rounded(entry.formula),
            "pick": i == front.pick,
        }
        for i, entry in enumerate(front.entries)
    ]


def _latest(folder: Path) -> float:
    """When something in it last changed. What is being written is hidden, and may be gone at any time."""
    changed = [0.0]
    for path in folder.glob("[!.]*"):
        with suppress(OSError):
            changed.append(path.stat().st_mtime)
    return max(changed)
