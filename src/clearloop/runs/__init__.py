"""A run directory holds what was asked of a run, the data it learned from, and the controllers it found."""

from clearloop.runs.directory import Request, RunDirectory
from clearloop.runs.front import (
    Before,
    Entry,
    Front,
    Judged,
    PublishedEntry,
    Trusted,
    examine_front,
    read_trust,
)
from clearloop.runs.learning import Interruption, Ledger, News, finish, polite_interruption, run_method

__all__ = [
    "Before",
    "Entry",
    "Front",
    "Interruption",
    "Judged",
    "Ledger",
    "News",
    "PublishedEntry",
    "Request",
    "RunDirectory",
    "Trusted",
    "examine_front",
    "finish",
    "polite_interruption",
    "read_trust",
    "run_method",
]
