"""`clearloop verify`."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.export import PrecisionOption, TaskOption, read_controller
from clearloop.cli.options import ControllerName, Json, Run, Seed, controller_file, find_task, print_json
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.controllers import Controller
    from clearloop.verification import Verdict
    from clearloop.verification.vectors import Episode

NOT_EQUAL = 1  # exit code


def verify(
    controller: ControllerName,
    to: Annotated[str, typer.Option(help="c, st, plcopen, javascript or python.", metavar="LANGUAGE")],
    run: Run = None,
    task: TaskOption = None,
    data: Annotated[
        Path | None, typer.Option(help="A log, for its states; needs --task or --run.", metavar="LOG")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for the export and its test bench.", metavar="FOLDER"),
    ] = None,
    precision: PrecisionOption = "double",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Test that the exported code gives the same actions: run it and the original on the same test vectors.

    Example: clearloop verify 003 --run runs/demo --to st, or:
    clearloop verify examples/published/gprl.json --task cartpole --to c --out gprl
    """
    import numpy as np

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
            name=file.stem,
            precision=precision,
            log=log,
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
        raise ClearloopError("--data needs --task or --run: a task says what the log's columns are")
    from clearloop.data import Batch
    from clearloop.export import lower
    from clearloop.verification.log import logged

    the_task = find_task(task, run)
    return logged(lower(controller), Batch.load(data, the_task), the_task)


def _say(verdict: "Verdict", out: Path | None) -> None:
    from clearloop.cli.terminal import say

    left = f"{verdict.left_out:,} left out, where rounding decides" if verdict.left_out else "none left out"
    say(f"{verdict.vectors:,} vectors compared, {left}.")
    word = "equal" if verdict.equal else "NOT equal"
    size = f"largest difference {verdict.difference:.2g} of an action's range"
    say(f"{verdict.to}, {verdict.precision} precision: {word}; {size}, {verdict.tolerance:g} allowed.")
    if out is not None:
        say(f"Test bench: {out / 'vectors.csv'}")
