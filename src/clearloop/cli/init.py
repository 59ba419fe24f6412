"""The command `init` drafts a task file from a log; the command `tasks` lists and shows tasks."""

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from clearloop.cli.options import Json, print_json
from clearloop.cli.terminal import echo, print_table, say, shell_word, visible, wrapped
from clearloop.errors import ClearloopError
from clearloop.files import file_name, whole_file
from clearloop.numbers import counted

if TYPE_CHECKING:
    from clearloop.data.drafting import Plan, Wishes
    from clearloop.data.survey import Guess
    from clearloop.task import Task


_Answer = TypeVar("_Answer")

# The values of the options of `init`.

GOAL = re.compile(r"\s*(?P<state>.+?)(\s+at\s+(?P<value>\S+))?\s+within\s+(?P<tolerance>\S+)\s*")


def assignment(text: str, option: str) -> tuple[str, str]:
    """Read NAME=VALUE; `option` names the option in errors."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise ClearloopError(f"{option} {text}: expected NAME=VALUE")
    return name.strip(), value.strip()


def read_goal(text: str) -> tuple[str, str | None, float]:
    """Read a goal such as `level at 1.5 within 0.05`: the state, its setpoint or None, and the tolerance."""
    found = GOAL.fullmatch(text)
    tolerance = _float(found["tolerance"]) if found else None
    if found is None or tolerance is None or tolerance < 0:
        raise ClearloopError(f'--goal {text}: expected "STATE within TOLERANCE", such as "level within 0.05"')
    return found["state"], found["value"], tolerance


def velocity_of(text: str) -> tuple[str, float | None]:
    """Read STATE or STATE:SECONDS: the state, and the time constant of the filter or None."""
    name, colon, seconds = text.rpartition(":")
    if not colon:
        return text, None
    value = _float(seconds)
    if value is None or value < 0:
        raise ClearloopError(f"--velocity {text}: expected STATE, or STATE:SECONDS for the filter")
    return name, value


def read_limits(text: str) -> tuple[str, tuple[float, float]]:
    """Read ACTION=LOW,HIGH."""
    name, value = assignment(text, "--limits")
    ends = [_float(part) for part in value.split(",")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None or not ends[0] < ends[1]:
        raise ClearloopError(f"--limits {text}: expected ACTION=LOW,HIGH, such as valve=0,100")
    return name, (ends[0], ends[1])


def positive(dt: float | None) -> float | None:
    """Check that a time step, if it is given, is positive and finite."""
    if dt is not None and not 0 < dt < float("inf"):
        raise ClearloopError(f"--dt {dt:g}: expected a number of seconds above 0")
    return dt


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def init(
    log: Annotated[
        str, typer.Argument(help="A log: .csv, .parquet, .xlsx, .npz or minari:NAME.", metavar="LOG")
    ],
    state: Annotated[
        list[str] | None, typer.Option(help="A measured column; repeatable.", metavar="COLUMN")
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option(help="A column that the controller sets; repeatable.", metavar="COLUMN"),
    ] = None,
    setpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="The setpoint of a state: a column or a number; repeatable.", metavar="STATE=COLUMN|NUMBER"
        ),
    ] = None,
    external: Annotated[
        list[str] | None,
        typer.Option(help="A measured column that the model need not predict; repeatable.", metavar="COLUMN"),
    ] = None,
    velocity: Annotated[
        list[str] | None,
        typer.Option(
            help="Derive the velocity of a state, with a filter; repeatable.", metavar="STATE[:SECONDS]"
        ),
    ] = None,
    integral: Annotated[
        list[str] | None,
        typer.Option(help="Sum up the errors of a state, for an integral part; repeatable.", metavar="STATE"),
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            help="How close to its setpoint a state must be; repeatable.",
            metavar='"STATE [at VALUE] within TOLERANCE"',
        ),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(help="The limits of an action; repeatable.", metavar="ACTION=LOW,HIGH"),
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column with the time.", metavar="COLUMN")] = None,
    episode: Annotated[
        str | None, typer.Option(help="The column with the number of the episode.", metavar="COLUMN")
    ] = None,
    dt: Annotated[
        float | None,
        typer.Option(help="Seconds between two actions; found in the log if not given.", metavar="SECONDS"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The task file; named after the log if not given.", metavar="FILE.toml"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the task file.")] = False,
) -> None:
    """Examine a log, ask what its columns are, and write a task file for it.

    Example: clearloop init log.csv --action valve --setpoint level=1.5 --goal "level within 0.05"
    """
    from clearloop.data import check, read
    from clearloop.data.drafting import Wishes, draft, make_plan, remember
    from clearloop.data.survey import guess_roles, survey
    from clearloop.task import Task

    target = out or Path(file_name(Path(log.removeprefix("minari:")).stem) + ".toml")
    _check_target(target, force)
    goals = [read_goal(text) for text in goal or ()]
    wishes = Wishes(
        states=state or (),
        actions=action or (),
        external=external or (),
        setpoints=dict(assignment(text, "--setpoint") for text in setpoint or ())
        | {state: value for state, value, _ in goals if value is not None},
        velocities=dict(map(velocity_of, velocity or ())),
        integrals=integral or None,
        tolerances={state: tolerance for state, _, tolerance in goals},
        limits=dict(map(read_limits, limits or ())),
        time=time,
        episode=episode,
        dt=positive(dt),
    )
    frame = read(log)
    guesses = guess_roles(survey(frame))
    try:
        plan = None if _on_terminal() else make_plan(guesses, wishes)
        print_table(("column", "values", "role", "why"), [_row(guess, plan) for guess in guesses])
        plan = plan or _agree(guesses, wishes)
    except ClearloopError as error:
        raise ClearloopError(f"{log}: {error}") from error
    first = Task.from_toml(draft(plan, target.stem, log), source=str(target))
    plan = remember(plan, check(first, frame))
    text = draft(plan, target.stem, log)
    task = Task.from_toml(text, source=str(target))
    with whole_file(target) as file:
        file.write(text.encode())
    computed = sum(state.formula is not None for state in task.states.values())
    states = counted(len(task.states), "state") + f" ({computed} computed)" * (computed > 0)
    say(f"Task   {target}: {states}, {counted(len(task.actions), 'action')}, dt = {task.dt:g} s")
    say("Next   read it, correct it, and then ask whether the log is fit to learn from:")
    echo(f"clearloop data check {shell_word(log)} --task {shell_word(str(target))}")


def _row(guess: "Guess", plan: "Plan | None") -> tuple[str, str, str, str]:
    # The plan is what the options made of the guesses; it is None while the user has not yet been asked.
    name, role, why = guess.column.name, str(guess.role), guess.why
    if plan is not None and role != (decided := plan.role(name, role)):
        role, why = decided, "as the options say"
    elif guess.of is not None:
        why = f"of {guess.of.header.name}; {why}"
    return name, guess.column.range, role, why


def _check_target(target: Path, force: bool) -> None:
    if target.suffix != ".toml":
        raise ClearloopError(f"--out {target}: expected a name that ends in .toml")
    if target.exists() and not force:
        raise ClearloopError(f"{target}: already exists: use --out FILE.toml, or --force to overwrite it")


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _agree(guesses: "tuple[Guess, ...]", wishes: "Wishes") -> "Plan":
    """Ask until a plan can be made; what was answered is the default of the next time."""
    from clearloop.data.drafting import make_plan

    answered = wishes
    for _ in range(MOST_ROUNDS - 1):
        answered = _ask(guesses, wishes, answered)
        try:
            return make_plan(guesses, answered)
        except ClearloopError as error:
            say(f"{error}. What was answered stands in brackets:")
    return make_plan(guesses, _ask(guesses, wishes, answered))


MOST_ROUNDS = 20  # of questions


def _ask(guesses: "tuple[Guess, ...]", said: "Wishes", answered: "Wishes") -> "Wishes":
    """Ask for what the options do not say. Defaults are the last answers, or the guesses.

    Args:
        guesses: What the columns seem to be.
        said: What the options say.
        answered: The options and the answers so far.
    """
    from clearloop.data.survey import find

    known = [guess.column for guess in guesses]

    def columns(question: str, role: str, last: Sequence[str]) -> list[str]:
        usual = last or [guess.column.name for guess in guesses if guess.role == role]
        return _repeat(
            f"{question} (columns, with ; between them)",
            "; ".join(usual),
            lambda answer: [find(name, known).name for name in _parts(answer)],
        )

    def setpoint(answer: str) -> str:
        return answer if answer.strip() == "-" or _float(answer) is not None else find(answer, known).name

    if not said.actions:
        actions = columns("Actions that the controller sets", "action", answered.actions)
        answered = replace(answered, actions=actions)
    if not said.states:
        states = columns("States that are measured", "state", answered.states)
        answered = replace(answered, states=states)
    setpoints = {guess.of.name: guess.column.name for guess in guesses if guess.of is not None}
    setpoints |= answered.setpoints
    for name in () if said.setpoints else answered.states:
        question = f"Setpoint of {name} (a column, a number, or - for none)"
        answer = _repeat(question, setpoints.get(name, "-"), setpoint)
        answered = replace(answered, setpoints={**answered.setpoints, name: answer})
    if not said.velocities:
        usual = "; ".join(name if t is None else f"{name}:{t:g}" for name, t in answered.velocities.items())
        velocities = _repeat(
            "Velocities to derive (states, with ; between them, or -)",
            usual or "-",
            lambda text: dict(map(velocity_of, _parts(text))),
        )
        answered = replace(answered, velocities=velocities)
    if said.dt is None and answered.time is None and not any(guess.role == "time" for guess in guesses):
        usual = "" if answered.dt is None else f"{answered.dt:g}"
        answered = replace(answered, dt=_repeat("Seconds between two rows", usual or "1", _seconds))
    return answered


def _parts(answer: str) -> list[str]:
    return [part.strip() for part in answer.split(";") if part.strip() not in ("", "-")]


def _seconds(answer: str) -> float | None:
    value = _float(answer)
    if value is None:
        raise ClearloopError(f"{answer}: expected a number of seconds above 0")
    return positive(value)


def _repeat(question: str, default: str, read: Callable[[str], _Answer]) -> _Answer:
    """Ask a question until the answer can be read."""
    for _ in range(MOST_ROUNDS - 1):
        try:
            return read(_prompt(question, default))
        except ClearloopError as error:
            say(f"{error}")
    return read(_prompt(question, default))


def _prompt(question: str, default: str) -> str:
    *lines, last = wrapped(visible(f"{question} [{default}]"), shutil.get_terminal_size().columns - 2)
    for line in lines:
        echo(line)
    answer: str = typer.prompt(last, default=default, show_default=False)
    return answer


def tasks(
    task: Annotated[
        str | None,
        typer.Argument(help="A built-in task or a task file to show in full.", metavar="TASK"),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in tasks, or show one task with its reward written out.

    Example: clearloop tasks, or: clearloop tasks mytask.toml
    """
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
    print_table(("task", "states", "actions", "step", "horizon"), rows, wrapped=(1, 2))


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
    """Return reward, failure and success as formulas, or None if there is no formula."""
    from clearloop.expression import to_text

    formulas = {
        "reward": task.reward_expression,
        "failure": task.failure_condition,
        "success": task.success_condition,
    }
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
    if judgements["success"]:
        yield f"Success {judgements['success']}"
