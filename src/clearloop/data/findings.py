"""Findings about a log, for people and for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from clearloop.errors import ClearloopError
from clearloop.showing import Shown

Severity = Literal["ok", "note", "warning", "problem"]
SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "problem")


@dataclass(frozen=True)
class Finding:
    """One thing that a check has found in a log."""

    severity: Severity
    code: str
    """The kind of finding; programs may rely on it."""
    message: str
    """What was found and what to do, for people."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """The names and numbers of the message, as JSON values."""


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """All findings about a log, and the verdict."""

    summary: str
    """The size of the log, in words."""
    findings: tuple[Finding, ...]
    """The findings, the worst first."""

    @classmethod
    def of(cls, summary: str, findings: Iterable[Finding]) -> Self:
        """Make a report of findings in any order."""
        return cls(summary, tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity), reverse=True)))

    @property
    def severity(self) -> Severity:
        """The severity of the worst finding."""
        return self.findings[0].severity if self.findings else "ok"

    @property
    def verdict(self) -> str:
        """One sentence that says whether the log is fit to learn from."""
        worst = [finding for finding in self.findings if finding.severity == self.severity]
        if self.severity in ("ok", "note"):
            return f"This log is fit to learn from: {self.summary}."
        more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
        usable = "cannot be used as it is" if self.severity == "problem" else "can be learned from, with care"
        return f"This log {usable}: {worst[0].message}{more}."

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """The problems that forbid learning a controller from the log; empty if there are none."""
        return tuple(finding for finding in self.findings if finding.severity == "problem")

    def rows(self) -> list[tuple[str, str, str]]:
        """Return severity, code and message of each finding, ready for a table."""
        return [(finding.severity, finding.code, finding.message) for finding in self.findings]

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {mark}: {message}" for mark, _, message in self.rows())])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "verdict": self.verdict,
            "severity": self.severity,
            "summary": self.summary,
            "findings": [vars(finding) for finding in self.findings],
        }


def refuse(source: str, reasons: Sequence[Finding]) -> ClearloopError:
    """Make the error for a log, or its model, from which no controller can be learned.

    Args:
        source: What the error calls the log.
        reasons: The problems; the first is told in full.
    """
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return ClearloopError(
        f"{source}: no controller can be learned from this data: {reasons[0].message}{more}"
    )
