"""Logged data: reading it, examining it, and the batch of transitions that all methods learn from."""

from clearloop.data.batch import Batch
from clearloop.data.check import check
from clearloop.data.read import read
from clearloop.data.report import Finding, Report
from clearloop.data.transitions import Transitions

__all__ = ["Batch", "Finding", "Report", "Transitions", "check", "read"]
