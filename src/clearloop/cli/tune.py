"""The command `tune` finds new numbers for a PID from a log, beside what is there and what rules give."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.model import find_batch
from clearloop.cli.options import (
    Json,
    TaskOfRun,
    controller_file,
    find_task,
    load_controller,
    print_json,
)
from clearloop.cli.terminal import echo, print_table, say
from clearloop.errors import ClearloopError
from clearloop.numbers import percent, plain

if TYPE_CHECKING:
    from clearloop.methods.pid_rules import Gains
    from clearloop.methods.tuning import Row, Tuning

VENDORS = ("siemens", "codesys", "rockwell")


def tune_command(
    controller: Annotated[
        str | None,
        typer.Argument(
            help="The present controller, a PID file; what the log shows if not given.",
            metavar="CONTROLLER",
        ),
    ] = None,
    task: TaskOfRun = None,
    data: Annotated[
        list[Path] | None, typer.Option("--data", help="A log; repeatable.", metavar="FILE")
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="A run, for its task and its log.", metavar="DIR")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the new PID.", metavar="CONTROLLER")
    ] = None,
    structure: Annotated[
        str | None,
        typer.Option(help="PI or PID; that of the present controller if not given.", metavar="PI|PID"),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="The numbers that may change, such as kp,ti.", metavar="NAMES")
    ] = None,
    time_constant: Annotated[
        float | None,
        typer.Option(help="The time constant of the closed loop, in seconds, by SIMC.", metavar="SECONDS"),
    ] = None,
    most_change: Annotated[
        float | None,
        typer.Option(help="The factor by which a number may change at most, such as 2.", metavar="FACTOR"),
    ] = None,
    ms: Annotated[
        float | None,
        typer.Option(help="The largest sensitivity Ms that the search may use (1.6).", metavar="MS"),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Where to draw step responses and Bode plots: .png or .svg.", metavar="FILE"),
    ] = None,
    vendor: Annotated[
        str | None,
        typer.Option(help="Also print the numbers of a vendor's block.", metavar="siemens|codesys|rockwell"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find new numbers for a PID from a log: by rules that engineers know, and by a search.

    All stand beside the present numbers, with what each does by the linear model of the log.

    Example: clearloop tune --task task.toml --data log.csv --out new.json --vendor siemens
    """
    from clearloop.controllers import save
    from clearloop.methods.pid_search import Limits
    from clearloop.methods.tuning import tune
    from clearloop.task import Task

    if vendor is not None and vendor not in VENDORS:
        raise ClearloopError(f"--vendor {vendor}: expected {', '.join(VENDORS)}")
    if structure is not None and structure.upper() not in ("PI", "PID"):
        raise ClearloopError(f"--structure {structure}: expected PI or PID")
    for name, value, least in (("time-constant", time_constant, 0.0), ("most-change", most_change, 1.0)):
        if value is not None and not least < value < math.inf:
            raise ClearloopError(f"--{name} {value:g}: expected a number above {least:g}")
    the_task: Task = find_task(task, run)
    files = data or ([run / "batch.parquet"] if run is not None else [])
    if not files:
        raise ClearloopError("tune: a log is missing: give --data FILE, or --run DIR for the log of a run")
    given = None
    if controller is not None:
        given = load_controller(controller_file(controller, run), the_task)
    names = None if only is None else tuple(name.strip().lower() for name in only.split(","))
    asked: dict[str, Any] = {
        "ms": ms,
        "only": names,
        "most_change": most_change,
        "time_constant": time_constant,
    }
    limits = Limits(**{name: value for name, value in asked.items() if value is not None})
    found = tune(
        the_task,
        find_batch(the_task, files, 0),
        given,
        limits=limits,
        structure=structure and structure.upper(),
    )
    if figure is not None:
        from clearloop.figures.style import save_figure
        from clearloop.figures.trajectories import draw_tuning

        save_figure(draw_tuning(found), figure)
    if out is not None:
        save(found.controller, out)
    if as_json:
        print_json(found.to_dict() | {"file": out and str(out)})
        return
    _print(found)
    if vendor is not None:
        for line in vendor_lines(vendor, found.rows[found.picked].gains, found.task.dt):
            say(line)
    if figure is not None:
        echo(f"Figure  {figure}")
    if out is not None:
        echo(f"File    {out}")
    else:
        say("Next    --out new.json writes the proposal as a controller; --figure new.png draws all of them")


def _print(found: "Tuning") -> None:
    say(found.verdict)
    say(f"The plant from {found.action} to {found.state}: {_shape_words(found)}")
    rows = [_cells(row, k == found.picked) for k, row in enumerate(found.rows)]
    print_table(
        ("", "Kp", "Ti s", "Td s", "Ms", "phase", "load", "noise", "over", "settles"),
        rows,
        right=range(1, 10),
    )
    say(
        "load: integral of |error| after a unit step of the load; noise: how much white noise of the "
        "measurement moves the action; over, settles: overshoot and seconds until rest, after a step of the "
        "setpoint. Z-N: Ziegler-Nichols. * is proposed.",
        indent="",
    )
    say(found.words, indent="")


def _shape_words(found: "Tuning") -> str:
    shape = found.shape
    if shape is None:
        return "it runs away by itself, or does not answer."
    if shape.integrates:
        return f"it integrates, {plain(shape.gain)} per second, dead time {plain(shape.delay)} s."
    return f"gain {plain(shape.gain)}, time constant {plain(shape.lag)} s, dead time {plain(shape.delay)} s."


def _cells(row: "Row", picked: bool) -> list[str]:
    gains, one = row.gains, row.found
    if not one.stable:
        end = ["unstable", "", "", "", "", ""]
    else:
        settles = plain(one.settling) if math.isfinite(one.settling) else "-"
        phase = f"{one.phase_margin:.0f}" if math.isfinite(one.phase_margin) else "any"
        end = [
            f"{one.ms:.2f}",
            phase,
            plain(one.load),
            plain(one.noise),
            percent(one.overshoot, 0),
            settles,
        ]
    times = [plain(value) if value else "-" for value in (gains.ti, gains.td)]
    name = row.name.replace("Ziegler-Nichols", "Z-N")
    return [f"{'*' if picked else ' '} {name}", plain(gains.kp), *times, *end]


def vendor_lines(vendor: str, gains: "Gains", dt: float) -> list[str]:
    """Return the parameters of a vendor's block for these gains, a line for each.

    Args:
        vendor: siemens (PID_Compact), codesys (Util.PID) or rockwell (PIDE).
        gains: The gains, in the units of the log and in seconds.
        dt: Seconds of a step.
    """
    kp, ti, td, tf, b = gains
    if vendor == "siemens":
        ratio = tf / td if td else 0.2
        return [
            "Siemens PID_Compact, Retain.CtrlParams:",
            f"    Gain {kp:.5g}, Ti {ti:.5g} s, Td {td:.5g} s, TdFiltRatio {ratio:.4g} (Tf/Td)",
            f"    PWeighting {b:.4g}, DWeighting 0 (derivative of the measurement), Cycle {dt:g} s",
            *["    Gain must be positive: set Config.InvertControl, and Gain to its size"] * (kp < 0),
        ]
    if vendor == "codesys":
        lines = [
            "CODESYS Util.PID:",
            f"    KP {kp:.5g}, TN {ti:.5g} s, TV {td:.5g} s, called every {dt:g} s",
        ]
        if tf or b != 1 or td:
            lines.append(
                "    it has no filter of the derivative, no weight of the setpoint, and takes the derivative "
                "of the error: change the setpoint by a ramp, and export the block for the rest"
            )
        return lines
    return [
        "Rockwell PIDE, dependent gains (DependIndepend = 1), times in minutes:",
        f"    PGain {kp:.5g} * (span of PV / span of CV), since it works in percent of span",
        f"    IGain {60 / ti if ti else 0:.5g} 1/min (1/Ti), DGain {td / 60:.5g} min (Td)",
        f"    PVEProportional {'false' if b >= 0.5 else 'true'} (the setpoint counts fully or not at all), "
        f"PVEDerivative true, DSmoothing {'true' if tf else 'false'}",
    ]
