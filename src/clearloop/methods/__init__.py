"""The paper's ways to get controllers from a batch, one file each."""

from clearloop.methods.learning import BUDGETS, VALUES, Point, Result, learn, snapshot
from clearloop.methods.method import Candidate, Method, Problem, Search, State

__all__ = [
    "BUDGETS",
    "VALUES",
    "Candidate",
    "Method",
    "Point",
    "Problem",
    "Result",
    "Search",
    "State",
    "learn",
    "snapshot",
]
