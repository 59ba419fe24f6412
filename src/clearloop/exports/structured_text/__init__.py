"""Exports to IEC 61131-3 Structured Text, plain and in PLCopen XML. See `docs/structured_text.md`."""

from clearloop.exports.structured_text.printing import pous, structured_text

__all__ = ["pous", "structured_text"]
