"""From a frame to a log that a task can learn from: read, laid on a grid, derived states filled in."""

from dataclasses import replace
from typing import Any

from clearloop.data.derivation import derive
from clearloop.data.log import Log, read_log
from clearloop.data.read import from_any
from clearloop.data.resampling import resample
from clearloop.task import Task


def prepare(frame: Any, task: Task) -> Log:
    """With all of its problems; one that has any is left as it was read."""
    log = resample(read_log(from_any(frame), task.columns), task)
    return log if log.problems else replace(log, states=derive(log, task).get("states", log.states))
