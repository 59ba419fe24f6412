"""Verification: a test that an export computes the same function as its controller. See `docs/export.md`."""

from clearloop.verification.vectors import Amount
from clearloop.verification.verdict import BenchTrial, Verdict, verify

__all__ = ["Amount", "BenchTrial", "Verdict", "verify"]
