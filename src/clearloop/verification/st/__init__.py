"""An interpreter of the subset of IEC 61131-3 Structured Text that is exported.

It reads text, shares no code with the printers, and is stricter than any PLC: what some controller might
refuse or stop at is an error here.
"""

from clearloop.verification.st.execution import Block
from clearloop.verification.st.parsing import StructuredTextError, parse_st

__all__ = ["Block", "StructuredTextError", "parse_st"]
