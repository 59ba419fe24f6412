"""`clearloop export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import ControllerName, Run, controller_file, find_task, load_controller
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.controllers import Controller

TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="Whose limits, units and setpoints to use where the file has none; the run's, if not given.",
        metavar="TASK",
    ),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision", help="Of the numbers; single only for c, st and plcopen.", metavar="double|single"
    ),
]


def export(
    controller: ControllerName,
    to: Annotated[str, typer.Option(help="c, st, plcopen, javascript, python or latex.", metavar="LANGUAGE")],
    run: Run = None,
    task: TaskOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write; C gets its header beside it. Standard output if not given.", metavar="FILE"
        ),
    ] = None,
    precision: PrecisionOption = "double",
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="For a PID in st or plcopen: anti-windup, deadband, derivative-filter, manual, rate-limit. "
            "Repeatable.",
            metavar="OPTION",
        ),
    ] = None,
) -> None:
    """Write a controller as source code, with its limits.

    Example: clearloop export 003 --run runs/demo --to st, or:
    clearloop export examples/published/gprl.json --task cartpole --to c --out gprl.c
    """
    from clearloop.export import export as translate

    file = controller_file(controller, run)
    the_controller = read_controller(file, task, run)
    files = translate(
        the_controller, to=to, name=(out or file).stem, precision=precision, options=options or ()
    )
    if out is None:
        for text in files.values():
            typer.echo(text, nl=False)
    else:
        typer.echo(f"{_write(files, out)}: {the_controller.summary[:80]}")
    free = [name for name in the_controller.actions if name not in the_controller.limits]
    if free:
        typer.echo(f"note: {', '.join(free)} has no limits: give --task, or limits in the file", err=True)


def _write(files: dict[str, str], out: Path) -> str:
    """The paths, for people."""
    from clearloop.files import whole_file

    main = next(iter(files))
    if out.suffix != Path(main).suffix:
        raise ClearloopError(f"--out {out}: expected a name that ends in {Path(main).suffix}")
    if len(files) > 1 and out.name != main:  # the source names its header
        raise ClearloopError(f"--out {out}: a header needs a plain name, such as {main}")
    paths = [out.parent / name for name in files] if len(files) > 1 else [out]
    for path, text in zip(paths, files.values(), strict=True):
        with whole_file(path) as file:
            file.write(text.encode())
    return ", ".join(map(str, paths))


def read_controller(path: Path, task: str | None, run: Path | None) -> "Controller":
    """A controller, with what its file leaves to the task if there is one."""
    from clearloop.controllers import load

    return load(path) if task is None and run is None else load_controller(path, find_task(task, run))
