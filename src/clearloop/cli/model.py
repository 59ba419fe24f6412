"""The command `model` learns and examines a surrogate; `learn` uses the same steps."""

import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.options import Data, Json, Seed, print_json
from clearloop.cli.terminal import echo, make_bar, moving, progress, progress_lines, say, visible
from clearloop.errors import ClearloopError
from clearloop.numbers import counted, format_penalty, shorten_numbers

if TYPE_CHECKING:
    from rich.text import Text

    from clearloop.data import Batch
    from clearloop.methods import Candidate
    from clearloop.runs import News, RunDirectory
    from clearloop.runs.learning import TellNews
    from clearloop.surrogate import Quality, Surrogate, Track
    from clearloop.task import Task

MOST_TRANSITIONS = 100_000  # that a model is learned from
PIECE = 1_000  # the fewest rows of a piece of a long log; at least five horizons


def model(
    task: Annotated[str, typer.Argument(help="A built-in task or a task file.", metavar="TASK")],
    data: Data = None,
    track: Annotated[
        str,
        typer.Option(
            help="best: our improved model. published: the paper's, which promises too much.",
            metavar="best|published",
        ),
    ] = "best",
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="The run directory.", metavar="DIR")] = Path("runs/model"),
    as_json: Json = False,
) -> None:
    """Learn the surrogate model of a plant, and examine how far it can be trusted.

    Example: clearloop model cartpole --out runs/model
    """
    from clearloop.runs import RunDirectory
    from clearloop.surrogate import examine
    from clearloop.task import Task

    the_task, the_track, run = Task.load(task), find_track(track), RunDirectory(out)
    run.check_free(replacing="model")
    batch = manageable(the_task, find_batch(the_task, data or [], seed))
    asked = {"command": "model", "track": track, "seed": seed, "data": [str(path) for path in data or []]}
    with run.claimed(replacing="model"):
        run.begin(the_task, batch, asked)
        surrogate = learn_model(the_task, batch, the_track, seed)
        surrogate.save(run.path / "surrogate")
        quality = assess_model(surrogate, batch, run)
        verdict = examine(the_task, batch, surrogate)
        run.mark("finished")
    if as_json:
        print_json(quality.to_dict() | {"trust": verdict.to_dict()})
        return
    echo(f"Batch      {batch!r}")
    echo(f"Surrogate  {surrogate!r}")
    echo(f"           {quality.verdict}, judged on {quality.steps:,} held-out transitions:")
    print_reasons(quality.to_dict())
    doubtful = [one for one in verdict.findings if one.severity in ("problem", "warning")]
    trust = "a controller cannot be learned" if verdict.refusals else "controllers can be learned"
    say(f"Trust      {trust} with this model", indent=" " * 11)
    for one in doubtful:
        say(f"           - {one.severity}: {one.message}", indent="  ")
    echo(f"Written    {out}")


def find_track(name: str) -> "Track":
    """Return the track of a name that `--track` gives."""
    from clearloop.surrogate import TRACKS

    if name not in TRACKS:
        raise ClearloopError(f"--track {name}: expected {' or '.join(TRACKS)}")
    return TRACKS[name]


def find_batch(task: "Task", files: list[Path], seed: int) -> "Batch":
    """Load the user's log; without files, let the task's plant make a batch."""
    import numpy as np

    from clearloop.data import Batch
    from clearloop.plants.exploration import make_batch

    return Batch.load(files, task) if files else make_batch(task, rng=np.random.default_rng(seed))


def manageable(task: "Task", batch: "Batch") -> "Batch":
    """Choose what to learn from: the batch itself, or pieces of a very long one, to save memory and time."""
    from clearloop.data import Batch

    pieces = batch.thinned(MOST_TRANSITIONS, max(PIECE, 5 * task.horizon), whole=task.starts_with_episodes)
    if pieces is batch:
        return batch
    what = f"{len(pieces):,} of its {len(batch):,} transitions, in evenly spaced parts"
    say(f"The log is long; the model is learned from {what}.", err=True)
    return Batch.from_frame(pieces.to_frame(), task)  # as --resume reads it: states are derived in each piece


def learn_model(task: "Task", batch: "Batch", track: "Track", seed: int) -> "Surrogate":
    """Fit the surrogate, with progress on standard error."""
    import numpy as np

    from clearloop.surrogate import Surrogate

    with progress("Learning the model") as tell:
        return Surrogate.fit(
            task,
            batch,
            track=track,
            rng=np.random.default_rng([seed, 1]),  # [seed] drew the batch
            progress=lambda share, loss: tell(share, f"held-out error {loss:.2g}"),
        )


def assess_model(surrogate: "Surrogate", batch: "Batch", run: "RunDirectory") -> "Quality":
    """Examine the model on the held-out part of its batch; write `quality.json` and `model.png`."""
    from clearloop.figures.model import draw_quality
    from clearloop.figures.style import save_figure
    from clearloop.surrogate import assess

    quality = assess(surrogate, surrogate.split(batch)[1])
    save_figure(draw_quality(quality), run.path / "model.png")
    run.write_json("quality.json", quality.to_dict())
    return quality


def print_reasons(quality: dict[str, Any], *, err: bool = False) -> None:
    """Print the reasons for the verdict; `quality` is the content of a `quality.json`."""
    for reason in quality["reasons"]:
        lines = textwrap.fill(reason, 80, initial_indent=" " * 11 + "- ", subsequent_indent=" " * 13)
        echo(lines, err=err)


# The display of a search.

MOST_ROWS = 8  # of the front


@contextmanager
def searching(method: str) -> "Iterator[TellNews]":
    """Show a search on standard error.

    On a terminal this is a bar with the best penalty so far, and below it the front as it grows; elsewhere it
    is a line every few seconds.

    Yields:
        A function to call with the news of the search.
    """
    title = f"Searching  {method}"
    if not sys.stderr.isatty():
        report = progress_lines(title)
        yield lambda news: report(news.share, _note(news, f", {counted(len(news.candidates), 'controller')}"))
        return
    from rich.console import Console, Group
    from rich.live import Live

    bar = make_bar()
    move = moving(bar, title)
    shown: Sequence[Candidate] = ()
    with Live(Group(bar), console=Console(stderr=True), transient=True) as live:

        def update(news: "News") -> None:
            nonlocal shown
            move(news.share, _note(news))
            if news.candidates is not shown:
                shown = news.candidates
                live.update(Group(bar, *_front(shown, live.console.width)))

        yield update


def _note(news: "News", more: str = "") -> str:
    best = f"best {format_penalty(news.best)}" if math.isfinite(news.best) else "beginning"
    return "judging the front" if news.over else f"{best}{more}"


def _front(candidates: "Sequence[Candidate]", width: int) -> "Iterator[Text]":
    """Yield a line for some of the front, from the simplest to the best: complexity, penalty, formula."""
    from rich.text import Text

    for candidate in _some(candidates):
        controller, penalty = candidate.controller, format_penalty(candidate.penalty)
        row = f"{controller.complexity:>10}  {penalty:>8}  {shorten_numbers(controller.summary)}"
        row = visible(row)
        yield Text(row if len(row) <= width else f"{row[: width - 1]}…", style="dim")


def _some(candidates: "Sequence[Candidate]") -> "Sequence[Candidate]":
    """Choose at most MOST_ROWS candidates, evenly spaced, with both ends."""
    last = len(candidates) - 1
    if last < MOST_ROWS:
        return candidates
    return [candidates[round(i * last / (MOST_ROWS - 1))] for i in range(MOST_ROWS)]
