"""Figures: each is drawn by a function that returns a matplotlib `Figure`. See `docs/figures.md`."""
