"""Commands that bring a controller into the plant: `shadow` runs it beside the plant, `pack` hands it on."""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.options import (
    ControllerName,
    Json,
    Run,
    RunFolder,
    TaskOfRun,
    controller_file,
    find_task,
    load_controller,
    print_json,
)
from clearloop.cli.terminal import InterruptedRunError, echo, progress, say, visible
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.controllers import Controller
    from clearloop.runs.feeds import Access, Feed, OpcuaFeed
    from clearloop.runs.shadow import Shadow
    from clearloop.task import Task


def pack(
    controller: ControllerName,
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The zip to write.", metavar="FILE.zip")],
) -> None:
    """Pack a controller with everything that a second person needs to check it without clearloop.

    The zip has the controller, its task, its exports, test vectors with the expected actions, the card,
    hashes of all files, and check.py, which needs nothing but Python. The same input gives the same bytes;
    the hash that is printed is that of the zip.

    Example: clearloop pack 003 --run runs/demo --out 003.zip; then, in the unpacked folder: python check.py
    """
    from clearloop.pages.pack import pack as write

    if out.suffix.lower() != ".zip":
        raise ClearloopError(f"--out {out}: expected a name that ends in .zip")
    with progress("Pack") as tell:
        tell(0.0, "examining the controller")
        digest = write(controller_file(controller, run), run, out)
    echo(f"Pack       {out}")
    echo(f"SHA-256    {digest}")


# Beside the plant.

PASSWORD = "CLEARLOOP_OPCUA_PASSWORD"  # noqa: S105 - the name of a variable
_EVERY = 10.0  # seconds between two lines without a terminal
_PAGE_EVERY = 600.0  # seconds between two reports
_NODES_FILE = 256 * 1024  # bytes


def shadow(
    controller: ControllerName,
    run: Run = None,
    task: TaskOfRun = None,
    opcua: Annotated[
        str | None,
        typer.Option(help="The OPC UA server to read, such as opc.tcp://plc:4840.", metavar="URL"),
    ] = None,
    csv: Annotated[
        str | None,
        typer.Option(help="A growing CSV file to read, or - for standard input.", metavar="FILE|-"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the samples and the report go; shadow-NAME if not given.", metavar="DIR"),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(help="A TOML file with a table opcua; the task's if not given.", metavar="FILE.toml"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help=f"A user of the server; the password comes from {PASSWORD}, or is asked for.", metavar="NAME"
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Our certificate, with --key (PEM or DER).", metavar="FILE")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The private key of --certificate.", metavar="FILE")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="The security policy with a certificate.", metavar="NAME")
    ] = "Basic256Sha256",
    once: Annotated[bool, typer.Option("--once", help="Stop at the end of the CSV file.")] = False,
    samples: Annotated[
        int | None, typer.Option(help="Stop after so many samples.", min=1, metavar="N")
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(
            help="Write the action to this node of the server; only with --i-am-responsible.",
            metavar="NODE",
        ),
    ] = None,
    responsible: Annotated[
        bool, typer.Option("--i-am-responsible", help="Needed with --write: the plant will be moved.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a controller beside the plant: say what it would do, and whether the plant is as promised.

    It only reads. It writes every sample, with the action that was applied and that of the controller, to
    shadow.csv, and a report to shadow.html. With --run it also says which states are outside the log, and
    whether the plant still answers as the model of the run promises. Stop it with Ctrl-C; the same command
    goes on, also after a power cut.

    Example: clearloop shadow 003 --run runs/demo --csv live.csv, or:
    clearloop shadow level.json --task tank.toml --opcua opc.tcp://plc:4840 --user operator
    """
    from clearloop.pages.shadow_report import verdicts, write_shadow_report
    from clearloop.runs.shadow import Shadow

    _check_sources(opcua, csv, write, responsible)
    the_task, file = find_task(task, run), controller_file(controller, run)
    the_controller = load_controller(file, the_task)
    if the_controller.plans:
        raise ClearloopError(f"{file}: a planner is not deployed, so it has no shadow")
    access = None
    if opcua is not None:
        access = _access(opcua, user, certificate, key, policy)
    feed, server = _feed(csv, access, nodes, the_task, the_controller, follow=not once)
    folder = out or Path(f"shadow-{file.stem}")
    region, promise = _known(run, the_task)
    stopped = False
    with Shadow(the_controller, the_task, folder, region=region, promise=promise) as beside:
        if beside.counts.samples:
            say(f"Goes on after {beside.counts.samples:,} samples in {beside.file}.", err=True)
        try:
            with _ended_by_services(), _screen(beside) as show:
                _watch(beside, feed, server, write, samples, show)
        except KeyboardInterrupt:
            stopped = True
    page = write_shadow_report(beside)
    if as_json:
        print_json(summary(beside))
    else:
        echo(f"samples    {beside.counts.samples:,}, {beside.counts.gaps:,} gaps")
        for _, text in verdicts(beside):
            say(text)
        echo(f"Report     {page}")
    if stopped:
        raise InterruptedRunError("stopped; the same command goes on")


def _check_sources(opcua: str | None, csv: str | None, write: str | None, responsible: bool) -> None:
    if (opcua is None) == (csv is None):
        raise ClearloopError("give one source: --opcua URL or --csv FILE")
    if write is not None and not responsible:
        raise ClearloopError(
            "--write moves the plant: add --i-am-responsible if you are, or leave --write out to only watch"
        )
    if responsible and write is None:
        raise ClearloopError("--i-am-responsible is only for --write NODE: leave it out to only watch")
    if write is not None and opcua is None:
        raise ClearloopError("--write needs --opcua: a CSV file cannot be written back to a plant")


def _access(url: str, user: str | None, certificate: Path | None, key: Path | None, policy: str) -> "Access":
    from clearloop.runs.feeds import Access

    if (certificate is None) != (key is None):
        raise ClearloopError("--certificate and --key belong together: give both")
    for file in filter(None, (certificate, key)):
        if not file.is_file():
            raise ClearloopError(f"{file}: no such file")
    password = os.environ.get(PASSWORD)
    if user is not None and password is None:
        if not sys.stdin.isatty():
            raise ClearloopError(f"--user {user}: set {PASSWORD} to the password")
        password = typer.prompt("Password", hide_input=True, err=True)
    return Access(url=url, user=user, password=password, certificate=certificate, key=key, policy=policy)


def _feed(
    csv: str | None,
    access: "Access | None",
    nodes: Path | None,
    task: "Task",
    controller: "Controller",
    *,
    follow: bool,
) -> "tuple[Feed, OpcuaFeed | None]":
    from clearloop.runs.feeds import OpcuaFeed, check_nodes, csv_feed
    from clearloop.runs.shadow import needed_states

    if access is None:
        return csv_feed(csv or "-", task, follow=follow), None
    table = _nodes(nodes) if nodes is not None else task.opcua
    if not table:
        raise ClearloopError(
            "--opcua needs the nodes: add a table [opcua] to the task, or give --nodes FILE.toml"
        )
    server = OpcuaFeed(access, check_nodes(table, task, needed_states(controller, task)), task.dt)
    return iter(server), server


def _nodes(file: Path) -> dict[str, str]:
    from clearloop.files import read_text
    from clearloop.task.task import parse_toml

    table = parse_toml(read_text(file, _NODES_FILE), str(file)).get("opcua")
    if not isinstance(table, dict) or not all(isinstance(node, str) for node in table.values()):
        raise ClearloopError(f'{file}: expected a table [opcua] with lines such as level = "ns=2;s=level"')
    return table


def _known(run: Path | None, task: "Task") -> "tuple[Any, Any]":
    """Return the region of the log of a run and what its model promises, if there is a run."""
    import numpy as np

    from clearloop.data import Batch
    from clearloop.diagnosis.robustness import Region
    from clearloop.runs.shadow import Promise
    from clearloop.surrogate import Surrogate

    if run is None:
        return None, None
    batch = Batch.load(run / "batch.parquet", task)
    surrogate = Surrogate.load(run / "surrogate", task)
    return Region(task, batch, rng=np.random.default_rng(0)), Promise(surrogate, batch)


def _watch(
    beside: "Shadow",
    feed: "Feed",
    server: "OpcuaFeed | None",
    node: str | None,
    most: int | None,
    show: Any,
) -> None:
    """Take samples until there are no more, and write the action where a person asked for it."""
    from clearloop.pages.shadow_report import write_shadow_report
    from clearloop.runs.feeds import Notice

    seen, page = 0, time.monotonic()
    for thing in feed:
        if isinstance(thing, Notice):
            if thing.text:
                beside.tell(thing.text)
        elif beside.take(thing):
            seen += 1
            if server is not None and node is not None:
                server.write(node, beside.command())
        show()
        if time.monotonic() - page > _PAGE_EVERY:
            write_shadow_report(beside)
            page = time.monotonic()
        if most is not None and seen >= most:
            return


def summary(beside: "Shadow") -> dict[str, Any]:
    """Return what was seen as JSON values."""
    counts = beside.counts
    differences = {
        name: {"mean": total / n, "rms": math.sqrt(squares / n), "largest": largest}
        for name, (n, total, squares, largest) in counts.differences.items()
        if n
    }
    return {
        "task": beside.task.name,
        "samples": counts.samples,
        "gaps": counts.gaps,
        "outside": counts.outside,
        "guarded": counts.guarded,
        "guards": counts.guards,
        "predictions": counts.checked,
        "kept": counts.kept,
        "left": counts.left,
        "has_left": beside.has_left,
        "differences": differences,
    }


@contextmanager
def _ended_by_services() -> Iterator[None]:
    """Let SIGTERM, by which service managers and containers end a program, do what Ctrl-C does."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _screen(beside: "Shadow") -> Iterator[Any]:
    """Show a shadow as it runs: a table that moves on a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(beside)
        return
    from rich.console import Console
    from rich.live import Live

    last = 0.0
    with Live(console=Console(stderr=True), auto_refresh=False) as live:

        def show() -> None:
            nonlocal last
            if time.monotonic() - last > 0.25:
                last = time.monotonic()
                live.update(_table(beside), refresh=True)

        yield show
        live.update(_table(beside), refresh=True)


class _Lines:
    """Prints every event, and a line every ten seconds."""

    def __init__(self, beside: "Shadow") -> None:
        self._beside, self._told, self._last = beside, beside.told, time.monotonic()

    def __call__(self) -> None:
        new = min(self._beside.told - self._told, len(self._beside.events))
        for event in list(self._beside.events)[len(self._beside.events) - new :]:
            say(event.text, err=True)
        self._told = self._beside.told
        if time.monotonic() - self._last > _EVERY:
            self._last = time.monotonic()
            say(", ".join(f"{name} {value}" for name, value in _facts(self._beside)), err=True)


def _facts(beside: "Shadow") -> Iterator[tuple[str, str]]:
    from clearloop.numbers import percent

    counts = beside.counts
    yield "samples", f"{counts.samples:,}"
    yield "gaps", f"{counts.gaps:,}"
    yield "guards", f"{counts.guarded:,}"
    if beside.region is not None and counts.samples:
        yield "outside the log", percent(counts.outside / counts.samples)
    if counts.checked:
        yield "in the promise", percent(counts.kept / counts.checked) + (" LEFT" if beside.has_left else "")


def _table(beside: "Shadow") -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("action", "applied", "controller"):
        grid.add_column(title, justify="left" if title == "action" else "right")
    for name in beside.task.action_names:
        cells = (beside.seen.get(name, math.nan), beside.shown.get(name, math.nan))
        unit = beside.controller.unit(name)
        grid.add_row(visible(name), *("" if math.isnan(x) else f"{x:.4g}{visible(unit)}" for x in cells))
    lines = [Text(visible(f"{name}: {value}")) for name, value in _facts(beside)]
    events = [Text(visible(one.text), style="yellow") for one in list(beside.events)[-5:]]
    return Group(grid, *lines, *events)
