"""A task's formulas as programs that the engine runs over its frame (`kernels/layout.py`)."""

from clearloop.programs.derivation import derive_after, derive_rows
from clearloop.programs.frame import frame_slot, lower_programs
from clearloop.programs.ways import lower_ways, unbounded

__all__ = ["derive_after", "derive_rows", "frame_slot", "lower_programs", "lower_ways", "unbounded"]
