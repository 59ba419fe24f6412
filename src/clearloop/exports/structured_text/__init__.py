"""Exports to IEC 61131-3 Structured Text, plain and in PLCopen XML. See `docs/structured_text.md`."""

from clearloop.exports.structured_text.plcopen import plcopen_xml
from clearloop.exports.structured_text.printing import OPTIONS, pous, structured_text

__all__ = ["OPTIONS", "plcopen_xml", "pous", "structured_text"]
