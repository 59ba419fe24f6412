"""Logged data: this package reads logs, checks them, and makes the batches that all methods learn from."""

from clearloop.data.batch import Batch, read
from clearloop.data.checks import check
from clearloop.data.findings import Finding, Report
from clearloop.data.log import Transitions

__all__ = ["Batch", "Finding", "Report", "Transitions", "check", "read"]
