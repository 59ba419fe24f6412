"""Tasks: what is to be controlled, as data."""

from clearloop.task.columns import Columns
from clearloop.task.file import builtin_tasks
from clearloop.task.task import Task

__all__ = ["Columns", "Task", "builtin_tasks"]
