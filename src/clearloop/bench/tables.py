"""What a bench leaves: `table.csv`, `table.md`, `timing.csv`, and the controllers that were found."""

from dataclasses import dataclass
from pathlib import Path

from clearloop.bench.course import Course
from clearloop.bench.document import document
from clearloop.bench.table import Row
from clearloop.controllers import Planner, from_json, save
from clearloop.files import whole_file
from clearloop.runs import RunDirectory
from clearloop.runs.tables import write_table


@dataclass(frozen=True)
class Timing:
    """A row of `timing.csv`."""

    method: str
    track: str
    seed: int
    seconds: float
    steps: int
    """of the model"""


def write_tables(run: RunDirectory, course: Course) -> None:
    write_table(run.path / "table.csv", Row, course.rows())
    timing, folder = [], run.folder("controllers")
    for work in course.bench.experiments(course.task):
        if not course.store.has(work.key):
            continue
        outcome = course.store.scores(work.key)
        seed = work.seed + work.number
        timing.append(Timing(work.method, work.track, seed, outcome["seconds"], outcome["steps"]))
        for name, score in outcome["scores"].items():
            controller = from_json(score["controller"])
            if isinstance(controller, Planner):  # whose model is not beside it, as in a run
                controller = controller.model_copy(update={"run": f"../models/{work.of_model.key}"})
            save(controller, folder / f"{work.track}-{name}-{seed}.json")
    write_table(run.path / "timing.csv", Timing, timing)
    _write(run.path / "table.md", _document(course))


def _document(course: Course) -> str:
    found, known = list(course.scores()), list(course.published())
    tracks = course.bench.tracks
    return document(
        f"{course.task.name}: {course.bench.seeds} experiments of each method",
        {track: [one for one in found if one.row.track == track] for track in tracks},
        {track: [one for one in known if one.row.track == track] for track in tracks},
        course.failed,
        in_paper=bool(known),
    )


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())
