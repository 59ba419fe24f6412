"""What the card rests on: files, code, data and versions, each with what tells it from any other."""

import hashlib

import clearloop
from clearloop.card.sections import Section, table
from clearloop.card.subject import Subject
from clearloop.errors import ClearloopError
from clearloop.export import TARGETS, export


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
