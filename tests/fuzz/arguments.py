"""Arguments for every command: from good ones, changed by options that the program itself lists."""

import random
from functools import cache
from typing import Any

from typer.main import get_command

from clearloop.cli.program import app
from tests.fuzz import words

GOOD = (
    "data check log.csv --task TASK", "data check log.csv TASK --json",
    "data explain log.csv --task TASK --out x.json", "data convert log.csv --task TASK --out x.csv",
    "data make TASK --size 20 --seed 1 --out x.parquet", "init log.csv --action force --goal THETA",
    "tasks", "tasks TASK --json", "learn TASK --data log.csv --method lqr --budget 100 --seed 1 --out new",
    "learn TASK --data log.csv --set gprl.population=10", "learn cartpole --out run --resume",
    "evaluate law.json --task TASK --starts 2", "evaluate 003 --run run --on model --starts 3 --json",
    "evaluate law.json --task TASK --on plant --starts 2 --seed 3",
    "simulate law.json --task TASK --start theta=0.1 --setpoint rho=1@5 --steps 9 --out x.csv",
    "simulate 003 --run run --on model --steps 5", "show run --json", "show 003 --run run",
    "show law.json --task TASK", "export law.json --task TASK --to st --precision single --out x.st",
    "export 003 --run run --to c --out x.c", "export law.json --task TASK --to plcopen --with rate-limit",
    "verify law.json --task TASK --to python --seed 1", "report run", "card 003 --run run --out x.html",
    "tune --task TASK --data log.csv --structure PI --only kp --ms 1.6 --most-change 2 --out x.json --json",
    "shadow law.json --task TASK --csv log.csv --once --samples 9 --out new",
    "model TASK --data log.csv --seed 1 --out new", "pack 003 --run run --out x.zip",
    "refine 003 --run run --round 2 --tolerance 0.1 --out x.json",
    "bench TASK --method lqr --seeds 1 --budget 100 --batch shared --track best --out new --json",
)  # fmt: skip
SLOW = {"report", "card", "refine", "tune", "pack"}  # each takes seconds when its arguments are right
LONG = {
    "--size",
    "--budget",
    "--seeds",
    "--steps",
    "--starts",
    "--engine",
    "--on",
}  # a right value may take long


def damaged_arguments(rng: random.Random, task: str) -> list[str]:
    """The arguments of a command with one to three changes."""
    line = rng.choice(GOOD)
    while line.split()[0] in SLOW and rng.random() < 0.7:
        line = rng.choice(GOOD)
    arguments = [task if word == "TASK" else word for word in line.split()]
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(rng, arguments)
    if arguments[0] == "shadow" and "--once" not in arguments:
        arguments.append("--once")  # it would wait for more samples for ever
    return arguments


def _change(rng: random.Random, arguments: list[str]) -> None:
    place, kind = rng.randrange(len(arguments)), rng.random()
    if kind < 0.2:
        del arguments[place]
        if not arguments:
            arguments.append("tasks")
    elif kind < 0.5 and place:
        arguments[place] = _odd(rng, arguments[place - 1], arguments[place])
    elif kind < 0.6 and place:
        other = rng.randrange(1, len(arguments))
        arguments[place], arguments[other] = arguments[other], arguments[place]
    elif kind < 0.65 and place:
        arguments.insert(place, arguments[place])
    else:
        options = _options(tuple(arguments[:2]))
        if options:
            option, flag = rng.choice(options)
            arguments += [option] if flag else [option, _odd(rng, option, "1")]


def _odd(rng: random.Random, option: str, old: str) -> str:
    if option in LONG:
        return rng.choice(("0", "-1", "1.5", "x", "", "1e3", "nan", "9" * 400, "2", "٣", "x:y", "dask:"))
    changed = rng.choice((
        words.damaged_text(rng, old), rng.choice(words.TEXTS), str(rng.choice(words.NUMBERS)), f"{old}=",
        f"{old}=1", f"theta={rng.choice(words.NUMBERS)}",
        f"rho={rng.choice(words.NUMBERS)}@{rng.choice(words.NUMBERS)}",
        f"gprl.population={rng.choice(words.NUMBERS)}", f"lqr.x={old}", "theta within 0.1", "run",
        "law.json", "log.csv", "missing.json", "x" * 300, "a/b/c.csv", ".hidden", "x.png", "x.toml",
        "minari:x/y-v0", "@5", "=",
    ))  # fmt: skip
    return _harmless(changed)


def _harmless(text: str) -> str:
    """A name that stays within the folder of its case, as bytes that a command line can have."""
    text = text.replace("\0", "").replace("..", ".")
    return text.encode("utf-8", "replace").decode().lstrip("/~")


@cache
def _options(start: tuple[str, ...]) -> list[tuple[str, bool]]:
    """The options of a command, and whether each is a flag."""
    command: Any = get_command(app)
    for word in start:
        command = getattr(command, "commands", {}).get(word, command)
    return [
        (option, bool(getattr(parameter, "is_flag", False)))
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("-") and option != "--help"
    ]
