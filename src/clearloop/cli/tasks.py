"""`clearloop tasks`."""

from clearloop.cli.options import Json, print_json


def tasks(as_json: Json = False) -> None:
    """List the built-in tasks.

    Example: clearloop tasks
    """
    from clearloop.task import Task, builtin_tasks

    loaded = [Task.load(name) for name in builtin_tasks()]
    if as_json:
        print_json([
            {
                "name": task.name,
                "states": list(task.state_names),
                "actions": list(task.action_names),
                "dt": task.dt,
                "horizon": task.horizon,
                "plant": task.plant is not None,
            }
            for task in loaded
        ])  # fmt: skip
        return
    from clearloop.cli.terminal import table

    rows = [
        (
            task.name,
            ", ".join(task.state_names),
            ", ".join(task.action_names),
            f"{task.dt:g} s",
            f"{task.horizon}",
        )
        for task in loaded
    ]
    table(("task", "states", "actions", "step", "horizon"), rows)
