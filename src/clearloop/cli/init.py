"""`clearloop init`: from a log that nobody has explained yet to a task file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.wishes import assignment, goal_of, limits_of, positive, velocity_of
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.data.plan import Plan, Wishes
    from clearloop.data.roles import Guess


def init(
    log: Annotated[str, typer.Argument(help="A log: .csv, .parquet, .xlsx or minari:NAME.", metavar="LOG")],
    state: Annotated[
        list[str] | None, typer.Option(help="A measured column; repeatable.", metavar="COLUMN")
    ] = None,
    action: Annotated[
        list[str] | None, typer.Option(help="A column that was set; repeatable.", metavar="COLUMN")
    ] = None,
    setpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="What a state should be: a column or a number; repeatable.", metavar="STATE=COLUMN|NUMBER"
        ),
    ] = None,
    external: Annotated[
        list[str] | None, typer.Option(help="Seen, but not to be predicted; repeatable.", metavar="COLUMN")
    ] = None,
    velocity: Annotated[
        list[str] | None,
        typer.Option(
            help="Derive a state's velocity, through a filter; repeatable.", metavar="STATE[:SECONDS]"
        ),
    ] = None,
    integral: Annotated[
        list[str] | None,
        typer.Option(help="Add up a state's errors, for an integral part; repeatable.", metavar="STATE"),
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            help="How near is near enough; repeatable.", metavar='"STATE [at VALUE] within TOLERANCE"'
        ),
    ] = None,
    limits: Annotated[
        list[str] | None, typer.Option(help="Of an action; repeatable.", metavar="ACTION=LOW,HIGH")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="The column that tells the time.", metavar="COLUMN")
    ] = None,
    episode: Annotated[
        str | None, typer.Option(help="The column that tells episodes apart.", metavar="COLUMN")
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
    """Look at a log, ask what is what, and write a task file for it.

    Example: clearloop init log.csv --action valve --setpoint level=1.5 --goal "level within 0.05"
    """
    from clearloop.cli.terminal import count, say, table
    from clearloop.data import check, read
    from clearloop.data.draft import draft
    from clearloop.data.plan import Wishes
    from clearloop.data.planning import make_plan, remember
    from clearloop.data.roles import guess_roles
    from clearloop.data.survey import survey
    from clearloop.files import file_name, whole_file
    from clearloop.task import Task

    target = out or Path(file_name(Path(log.removeprefix("minari:")).stem) + ".toml")
    _check_target(target, force)
    goals = [goal_of(text) for text in goal or ()]
    wishes = Wishes(
        states=state or (),
        actions=action or (),
        external=external or (),
        setpoints=dict(assignment(text, "--setpoint") for text in setpoint or ())
        | {state: value for state, value, _ in goals if value is not None},
        velocities=dict(map(velocity_of, velocity or ())),
        integrals=integral or (),
        tolerances={state: tolerance for state, _, tolerance in goals},
        limits=dict(map(limits_of, limits or ())),
        time=time,
        episode=episode,
        dt=positive(dt),
    )
    frame = read(log)
    guesses = guess_roles(survey(frame))
    try:
        plan = None if _on_terminal() else make_plan(guesses, wishes)
        table(("column", "values", "role", "why"), [_row(guess, plan) for guess in guesses])
        plan = plan or make_plan(guesses, _ask(guesses, wishes))
    except ClearloopError as error:
        raise ClearloopError(f"{log}: {error}") from error
    first = Task.from_toml(draft(plan, target.stem, log), source=str(target))
    plan = remember(plan, check(frame, first))
    text = draft(plan, target.stem, log)
    task = Task.from_toml(text, source=str(target))
    with whole_file(target) as file:
        file.write(text.encode())
    computed = sum(state.formula is not None for state in task.states.values())
    states = count(len(task.states), "state") + f" ({computed} computed)" * (computed > 0)
    say(f"Task   {target}: {states}, {count(len(task.actions), 'action')}, dt = {task.dt:g} s")
    say(f"Next   read it; then clearloop data check {log} --task {target}")


def _row(guess: "Guess", plan: "Plan | None") -> tuple[str, str, str, str]:
    """`plan`: what the options made of the guesses; none as long as nothing is decided."""
    name, role, why = guess.column.name, str(guess.role), guess.why
    if plan is not None and role != (decided := plan.role(name, role)):
        role, why = decided, "as the options say"
    elif guess.of is not None:
        role = f"setpoint of {guess.of.header.name}"
    return name, guess.column.range, role, why


def _check_target(target: Path, force: bool) -> None:
    if target.suffix != ".toml":
        raise ClearloopError(f"--out {target}: expected a name that ends in .toml")
    if target.exists() and not force:
        raise ClearloopError(f"{target}: is there already: use --out FILE.toml, or --force to overwrite it")


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask(guesses: "tuple[Guess, ...]", wishes: "Wishes") -> "Wishes":
    """What was not given as an option, with the guess as the default."""
    from dataclasses import replace

    def columns(question: str, role: str) -> list[str]:
        usual = [guess.column.name for guess in guesses if guess.role == role]
        answer = typer.prompt(f"{question} (columns, with ; between them)", default="; ".join(usual))
        return [name.strip() for name in answer.split(";") if name.strip()]

    wishes = replace(wishes, actions=wishes.actions or columns("What is set, the actions", "action"))
    wishes = replace(wishes, states=wishes.states or columns("What is measured, the states", "state"))
    setpoints = {guess.of.name: guess.column.name for guess in guesses if guess.of is not None}
    for name in () if wishes.setpoints else wishes.states:
        answer = typer.prompt(
            f"Setpoint of {name} (a column, a number, or - for none)", default=setpoints.get(name, "-")
        )
        if answer.strip() != "-":
            wishes = replace(wishes, setpoints={**wishes.setpoints, name: answer})
    if not wishes.velocities:
        answer = typer.prompt("Velocities to derive (states, with ; between them, or -)", default="-")
        found = [name.strip() for name in answer.split(";") if name.strip() not in ("", "-")]
        wishes = replace(wishes, velocities=dict(map(velocity_of, found)))
    return wishes
