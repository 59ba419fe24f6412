"""The commands `export` and `verify` write a controller as source code, and test that code."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import (
    ControllerName,
    Json,
    Run,
    Seed,
    controller_file,
    find_task,
    load_controller,
    print_json,
)
from clearloop.cli.terminal import echo, say
from clearloop.errors import ClearloopError
from clearloop.files import file_bytes, whole_file
from clearloop.registry import TARGETS

if TYPE_CHECKING:
    from clearloop.controllers import Controller
    from clearloop.exports import Files
    from clearloop.verification import Verdict
    from clearloop.verification.vectors import Episode

TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="The task whose limits, units and setpoints are used if the file has none; the run's task if "
        "not given.",
        metavar="TASK",
    ),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        help="The precision of the numbers; some languages have only double.",
        metavar="double|single",
    ),
]
BlockOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        help="An option of the block in c, st, plcopen or fmu; repeatable: action-deadband, enable, manual, "
        "rate-limit, tracking; for a PID also anti-windup, deadband, derivative-filter; for fmu also fmi3 "
        "(FMI 3.0 instead of 2.0), sources-only.",
        metavar="OPTION",
    ),
]


def export(
    controller: ControllerName,
    to: Annotated[str, typer.Option(help=f"One of: {', '.join(TARGETS)}.", metavar="LANGUAGE")],
    run: Run = None,
    task: TaskOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write the code, for C also its header; standard output if not given.",
            metavar="FILE",
        ),
    ] = None,
    precision: PrecisionOption = "double",
    options: BlockOptions = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            help="What to leave out: guard, the checks of the inputs in c, st, plcopen and fmu.",
            metavar="PART",
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(help="The sign-off sheet; the head of the text gives its hash.", metavar="FILE"),
    ] = None,
    date: Annotated[
        str,
        typer.Option(help="The day of the export, for its head; none if not given.", metavar="YYYY-MM-DD"),
    ] = "",
) -> None:
    """Write a controller as source code, with its limits.

    Example: clearloop export 003 --run runs/demo --to st, or:
    clearloop export examples/published/gprl.json --task cartpole --to c --out gprl.c
    """
    from clearloop.exports import export as translate
    from clearloop.exports.comments import made_from
    from clearloop.exports.targets import find_target

    ending = find_target(to).endings[0]
    if out is not None and out.suffix != ending:
        raise ClearloopError(f"--out {out}: expected a name that ends in {ending}")
    file = controller_file(controller, run)
    the_controller = read_controller(file, task, run)
    files = translate(
        the_controller,
        to=to,
        name=(out or file).stem,
        precision=precision,
        options=options or (),
        without=without or (),
        origin=made_from(file, run, card),
        date=date,
    )
    if out is None:
        if not all(isinstance(text, str) for text in files.values()):
            raise ClearloopError(f"{to} is no text: add --out FILE{ending}")
        for text in files.values():
            typer.echo(text, nl=False)
    else:
        echo(f"{_write(files, out)}: {the_controller.summary[:80]}")
    free = [name for name in the_controller.actions if name not in the_controller.limits]
    if free:
        echo(
            f"note: no limits are known for {', '.join(free)}; give --task, or write limits into the file",
            err=True,
        )


def _write(files: "Files", out: Path) -> str:
    """Write the files, and return their paths for people."""
    main = next(iter(files))
    if len(files) > 1 and out.name != main:  # the source names its header
        raise ClearloopError(f"--out {out}: a header needs a plain name, such as {main}")
    paths = [out.parent / name for name in files] if len(files) > 1 else [out]
    for path, content in zip(paths, files.values(), strict=True):
        with whole_file(path) as file:
            file.write(file_bytes(content))
    return ", ".join(map(str, paths))


def read_controller(path: Path, task: str | None, run: Path | None) -> "Controller":
    """Load a controller; the task of `--task` or of the run, if any, supplies what its file does not have."""
    from clearloop.controllers import load

    return load(path) if task is None and run is None else load_controller(path, find_task(task, run))


# Verification.

NOT_EQUAL = 1  # exit code


def verify(
    controller: ControllerName,
    to: Annotated[
        str,
        typer.Option(help="A language of export that can be run: c, st, python …", metavar="LANGUAGE"),
    ],
    run: Run = None,
    task: TaskOption = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A log whose states are tested, too; needs --task or --run.", metavar="LOG"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for the export and its test bench.", metavar="FOLDER"),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="The name of the block; that of the controller's file if not given.", metavar="NAME"
        ),
    ] = None,
    precision: PrecisionOption = "double",
    options: BlockOptions = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Test that the exported code gives the same actions as the controller, on the same test vectors.

    Give the same --with as for the export: the block is run with its guard, with broken sensors, and with
    changing modes. The text in --out is the one that 'clearloop export' writes with the same name.

    Example: clearloop verify 003 --run runs/demo --to st --with manual, or:
    clearloop verify examples/published/gprl.json --task cartpole --to c --out gprl
    """
    import numpy as np

    from clearloop.exports.comments import made_from
    from clearloop.verification import verify as compare

    file = controller_file(controller, run)
    the_controller = read_controller(file, task, run)
    log = _log(the_controller, data, task, run)
    with TemporaryDirectory() as temporary:
        folder = out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        verdict = compare(
            the_controller,
            to=to,
            folder=folder,
            rng=np.random.default_rng(seed),
            name=name or file.stem,
            precision=precision,
            log=log,
            options=options or (),
            origin=made_from(file, run),
        )
    if as_json:
        print_json({**asdict(verdict), "equal": verdict.equal})
    else:
        _say(verdict, out)
    if not verdict.equal:
        raise typer.Exit(NOT_EQUAL)


def _log(controller: "Controller", data: Path | None, task: str | None, run: Path | None) -> "list[Episode]":
    if data is None:
        return []
    if task is None and run is None:
        raise ClearloopError("--data needs --task or --run: a task says what the columns of a log are")
    from clearloop.data import Batch
    from clearloop.exports import lower
    from clearloop.verification.verdict import logged

    the_task = find_task(task, run)
    return logged(lower(controller), the_task, Batch.load(data, the_task))


def _say(verdict: "Verdict", out: Path | None) -> None:
    left = (
        f"{verdict.left_out:,} left out because rounding decides there"
        if verdict.left_out
        else "none left out"
    )
    say(f"{verdict.vectors:,} vectors compared, {left}.")
    if verdict.guarded:
        modes = " and modes that change" if verdict.options else ""
        say(f"{verdict.guarded:,} more with the guard, some of them with broken sensors{modes}.")
    word = "equal" if verdict.equal else "NOT equal"
    size = f"largest difference {verdict.difference:.2g} of an action's range"
    options = f" with {', '.join(verdict.options)}" if verdict.options else ""
    what = f"{verdict.to}{options}, {verdict.precision} precision"
    say(f"{what}: {word}; {size}, {verdict.tolerance:g} allowed.")
    if out is not None:
        say(f"Test bench: {out / 'vectors.csv'}")
