"""What the card rests on: files, code, data and versions, each with what tells it from any other."""

import hashlib

from clearloop.card.sections import Section, table
from clearloop.card.subject import Subject
from clearloop.controllers import Controller
from clearloop.errors import ClearloopError
from clearloop.export import TARGETS, export


def evidence(subject: Subject) -> Section:
    description = subject.description
    asked, data = description["asked"], description["data"]
    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    source = ", ".join(asked.get("data", ())) or "the plant of the task"
    rows = [
        ["data", f"{data['summary']}, from {source}, seed {asked.get('seed', 0)}", data["fingerprint"]],
        ["controller", subject.file, subject.fingerprint],
        *(
            ["export", name, digest]
            for name, digest in _exports(subject.controller, f"controller_{subject.name}")
        ),
        ["versions", versions, ""],
    ]
    return Section(
        "What this rests on",
        table=table(["", "", "SHA-256"], rows, widths=["auto", "1fr", "auto"], codes=[2]),
        notes=(
            "Exports: as 'clearloop export' writes them with --out and these names, in double precision.",
        ),
    )


def _exports(controller: Controller, name: str) -> list[tuple[str, str]]:
    """Each file of each target that takes such a controller, with the hash of its text."""
    found: list[tuple[str, str]] = []
    for target in TARGETS:
        try:
            files = export(controller, to=target, name=name)
        except ClearloopError:
            continue  # this language is not for controllers of this kind
        found += [(file, hashlib.sha256(text.encode()).hexdigest()) for file, text in files.items()]
    return found
