"""IEC 61131-3 Structured Text, plain and in PLCopen XML. See `docs/structured_text.md`."""

from clearloop.export.structured_text.options import OPTIONS
from clearloop.export.structured_text.plcopen import plcopen
from clearloop.export.structured_text.printing import pous, structured_text

__all__ = ["OPTIONS", "plcopen", "pous", "structured_text"]
