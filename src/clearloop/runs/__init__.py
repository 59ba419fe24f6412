"""Run directories: what was asked, what it was learned from, and what came out."""

from clearloop.runs.directory import RunDirectory
from clearloop.runs.front import Entry, Front, Judged, Known
from clearloop.runs.interruption import Interruption, polite_interruption
from clearloop.runs.learning import finish, run_method
from clearloop.runs.ledger import Ledger
from clearloop.runs.request import Request
from clearloop.runs.trust import Before, Trusted, examine_front, read_trust
from clearloop.runs.watching import News

__all__ = [
    "Before",
    "Entry",
    "Front",
    "Interruption",
    "Judged",
    "Known",
    "Ledger",
    "News",
    "Request",
    "RunDirectory",
    "Trusted",
    "examine_front",
    "finish",
    "polite_interruption",
    "read_trust",
    "run_method",
]
