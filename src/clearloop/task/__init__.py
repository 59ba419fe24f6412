"""Tasks: what is to be controlled, as data."""

from clearloop.task.tables import Columns
from clearloop.task.task import Task, builtin_tasks

__all__ = ["Columns", "Task", "builtin_tasks"]
