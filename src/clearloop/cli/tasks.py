"""`clearloop tasks`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.options import Json, print_json

if TYPE_CHECKING:
    from clearloop.task import Task


def tasks(
    task: Annotated[
        str | None,
        typer.Argument(help="A built-in name or a task file: what it says, in full.", metavar="TASK"),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in tasks; or show one, with its reward written out.

    Example: clearloop tasks, or: clearloop tasks mytask.toml
    """
    from clearloop.cli.terminal import say, table
    from clearloop.task import Task, builtin_tasks

    if task is not None:
        shown = Task.load(task)
        if as_json:
            print_json({**_document(shown), **_judgements(shown)})
        else:
            for line in _lines(shown):
                say(line)
        return
    loaded = [Task.load(name) for name in builtin_tasks()]
    if as_json:
        print_json([_document(each) for each in loaded])
        return
    rows = [
        (
            each.name,
            ", ".join(each.state_names),
            ", ".join(each.action_names),
            f"{each.dt:g} s",
            f"{each.horizon}",
        )
        for each in loaded
    ]
    table(("task", "states", "actions", "step", "horizon"), rows)


def _document(task: "Task") -> dict[str, Any]:
    return {
        "name": task.name,
        "states": list(task.state_names),
        "actions": list(task.action_names),
        "dt": task.dt,
        "horizon": task.horizon,
        "plant": task.plant is not None,
    }


def _judgements(task: "Task") -> dict[str, str | None]:
    """Reward and failure as formulas; None where there are none."""
    from clearloop.expression import to_text

    formulas = {"reward": task.reward_expression, "failure": task.failure_condition}
    return {what: None if formula is None else to_text(formula) for what, formula in formulas.items()}


def _lines(task: "Task") -> Iterator[str]:
    aims = {name: aim if isinstance(aim, str) else f"{aim:g}" for name, aim in task.setpoints.items()}
    yield f"{task.name}: a step every {task.dt:g} s, {task.horizon} steps ahead, discount {task.discount:g}."
    for name, state in task.states.items():
        unit = f" in {state.unit}" if state.unit else ""
        yield f"State {name}{unit}{f', setpoint {aims[name]}' if name in aims else ''}."
    for name, action in task.actions.items():
        low, high = action.limits
        step = f" in steps of {action.step:g}" if action.step else ""
        yield f"Action {name} from {low:g} to {high:g}{f' {action.unit}' if action.unit else ''}{step}."
    judgements = _judgements(task)
    yield f"Reward {judgements['reward'] or f'learned from column {task.columns.reward}'}"
    if judgements["failure"]:
        yield f"Failure {judgements['failure']}"
