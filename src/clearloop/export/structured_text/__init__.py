"""IEC 61131-3 Structured Text: printed from a routine."""
