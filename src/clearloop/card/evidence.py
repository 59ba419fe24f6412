"""What the card rests on: files, data and versions, each with what tells it from any other."""

from clearloop.card.sections import Section, table
from clearloop.card.subject import Subject


def exports(subject: Subject) -> Section | None:  # noqa: ARG001
    """SHA-256 of the source code for each target."""
    return None


def evidence(subject: Subject) -> Section:
    description = subject.description
    asked, data = description["asked"], description["data"]
    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    rows = [
        ["this controller's file", f"{subject.file}, SHA-256 {subject.fingerprint}"],
        ["data", f"{data['summary']}, SHA-256 {data['fingerprint']}"],
        ["from", ", ".join(asked.get("data", ())) or "the plant of the task"],
        ["seed, track", f"{asked.get('seed', 0)}, {asked.get('track', 'best')}"],
        ["versions", versions],
    ]
    return Section("What this rests on", table=table(["", ""], rows, widths=["auto", "1fr"]))
