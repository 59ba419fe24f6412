"""Figures: each is a function that gives a matplotlib `Figure`. See `docs/figures.md`."""
