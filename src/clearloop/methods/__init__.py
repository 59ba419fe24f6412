"""The methods of the paper, which find controllers for a task from a batch: one file for each method."""

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
