"""The paper's ways to get controllers from a batch, one file each."""

from clearloop.methods.learning import BUDGETS, VALUES, learn, snapshot
from clearloop.methods.method import Candidate, Method, Search, State
from clearloop.methods.problem import Problem
from clearloop.methods.result import Point, Result

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
