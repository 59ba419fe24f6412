"""Tasks: a task says as data what is to be controlled, and to what end."""

from clearloop.task.tables import Columns
from clearloop.task.task import Task, builtin_tasks

__all__ = ["Columns", "Task", "builtin_tasks"]
