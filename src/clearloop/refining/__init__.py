"""Simpler controllers that cost no more than allowed: fewer digits, fewer parts. See `docs/refine.md`."""

from clearloop.refining.refine import Refinement, Settings, Step, refine

__all__ = ["Refinement", "Settings", "Step", "refine"]
