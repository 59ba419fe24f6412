"""What an examination of a log found, for people and for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from clearloop.errors import ClearloopError

Severity = Literal["ok", "note", "warning", "problem"]
SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "problem")


@dataclass(frozen=True)
class Finding:
    severity: Severity
    code: str
    """Stable: programs may rely on it."""
    message: str
    numbers: dict[str, Any] = field(default_factory=dict)
    """What the message says, as JSON values."""


@dataclass(frozen=True)
class Report:
    """All findings, the worst first, and what they come to."""

    summary: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, summary: str, findings: Iterable[Finding]) -> Self:
        return cls(summary, tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity), reverse=True)))

    @property
    def severity(self) -> Severity:
        return self.findings[0].severity if self.findings else "ok"

    @property
    def verdict(self) -> str:
        """One sentence that a person understands."""
        worst = [finding for finding in self.findings if finding.severity == self.severity]
        if self.severity in ("ok", "note"):
            return f"This log is fit to learn from: {self.summary}."
        more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
        usable = "cannot be used as it is" if self.severity == "problem" else "can be learned from, with care"
        return f"This log {usable}: {worst[0].message}{more}."

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Why no controller can come of it; none if one can."""
        return tuple(finding for finding in self.findings if finding.severity == "problem")

    def rows(self) -> list[tuple[str, str, str]]:
        """Severity, code and message, ready for a table."""
        return [(finding.severity, finding.code, finding.message) for finding in self.findings]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "verdict": self.verdict,
            "severity": self.severity,
            "summary": self.summary,
            "findings": [vars(finding) for finding in self.findings],
        }


def refuse(source: str, reasons: Sequence[Finding]) -> ClearloopError:
    """The error of a log, or of its model, that cannot support a controller. `source`: what it is called."""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return ClearloopError(f"{source}: not from this data: because {reasons[0].message}{more}")
