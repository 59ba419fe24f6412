"""What leaves the studio: controllers compared in numbers, exported as source code, and packed."""

import hashlib
from typing import Any, NamedTuple

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, quoted
from clearloop.evaluation import Evaluation, evaluate
from clearloop.exports import export
from clearloop.exports.comments import made_from
from clearloop.files import file_bytes, file_name, zipped
from clearloop.numbers import counted, penalty_with_error
from clearloop.pages.pack import pack_files
from clearloop.pages.sentences import relative
from clearloop.registry import TARGETS
from clearloop.runs import RunDirectory
from clearloop.studio.guarding import CommandMessage, Name
from clearloop.studio.library import Catalog
from clearloop.studio.stage import Stage

# Comparison.

_STARTS = 256
_CLEAR = 2.0  # standard errors of a difference, from which on it is clear


def compare(catalog: Catalog, stage: Stage, first: str, second: str) -> dict[str, Any]:
    """Compare what two controllers cost from the same starts, on the plant or on the models in its place.

    Args:
        catalog: The tasks and their controllers.
        stage: The task.
        first: The `id` of a controller.
        second: The `id` of the one that it is compared with.

    Returns:
        JSON values: the `penalties` of both, and the comparison in `words`.

    Raises:
        ClearloopError: There is no such controller.
    """
    one, other = (_score(stage, catalog.controller(name, stage)) for name in (first, second))
    penalties = [score.to_dict()["penalty"] for score in (one, other)]
    return {"penalties": penalties, "words": _words(stage, one, other)}


def _score(stage: Stage, controller: Controller) -> Evaluation:
    if stage.models is not None:
        return stage.models.score(controller, _STARTS)
    return evaluate(controller, stage.task, starts=_STARTS)


def _words(stage: Stage, first: Evaluation, second: Evaluation) -> str:
    models, starts = first.penalties.shape
    where = "on the plant"
    if stage.models is not None:
        where = f"of the log, on {counted(models, 'model')}"
    said = " and ".join(
        f"the {side} costs {penalty_with_error(score.penalty, score.standard_error)}"
        for side, score in (("first", first), ("second", second))
    )
    from_rows = f"From the same {starts:,} {'rows' if stage.models else 'starts'} {where}"
    gained = (second.penalties - first.penalties).mean(axis=0)
    error = float(gained.std(ddof=1)) / starts**0.5
    if abs(float(gained.mean())) <= _CLEAR * error:
        return f"{from_rows}, {said}: no clear difference."
    each = (second.penalties - first.penalties).mean(axis=1) * (1 if gained.mean() > 0 else -1)
    doubt = "" if (each > 0).all() else f", but not on {counted(int((each <= 0).sum()), 'model')}"
    return f"{from_rows}, {said}: {relative(first.penalty, second.penalty)} the second{doubt}."


# Files to take away.


class ExportWish(CommandMessage):
    """The body of `POST /api/export`."""

    task: Name
    controller: Name
    """an `id` of /api/controllers"""
    target: Name


class PackWish(CommandMessage):
    """The body of `POST /api/pack`."""

    task: Name
    controller: Name
    """an `id` of /api/controllers, of a run"""


class Parcel(NamedTuple):
    """A file for the browser to save."""

    name: str
    content: bytes

    @property
    def digest(self) -> str:
        """The SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


def list_targets() -> list[dict[str, str]]:
    """Return the languages of exports for `GET /api/state`: the `name` of each and, for people, a `title`."""
    return [{"name": target.name, "title": target.title} for target in TARGETS.working()]


def exported(catalog: Catalog, wish: ExportWish) -> Parcel:
    """Export a controller; several files come as a zip.

    Raises:
        ClearloopError: There is no such controller or language, or they do not go together.
    """
    stage = catalog.find(wish.task)
    controller = catalog.controller(wish.controller, stage).for_task(stage.task)
    name = file_name(f"{stage.task.name}-{wish.controller.rpartition('/')[2]}")
    files = export(controller, to=wish.target, name=name, origin=_origin(catalog, wish.controller))
    contents = {file: file_bytes(content) for file, content in files.items()}
    if len(contents) == 1:
        return Parcel(*next(iter(contents.items())))
    return Parcel(f"{name}-{wish.target}.zip", zipped(contents))


def _origin(catalog: Catalog, controller: str) -> list[str]:
    """Return lines that say what an export was made from, as `clearloop export` writes them."""
    if not controller.startswith("runs/"):
        return []
    run, file = catalog.file(controller)
    return made_from(file, run.path)


def packed(catalog: Catalog, wish: PackWish) -> Parcel:
    """Pack a controller of a run with everything that a second person needs to check it.

    Raises:
        ClearloopError: There is no such controller, or it cannot be exported.
    """
    if not wish.controller.startswith("runs/"):
        raise ClearloopError(f"{quoted(wish.controller)}: only a controller of a run can be packed")
    catalog.controller(wish.controller, catalog.find(wish.task))  # says in one line what is wrong with it
    run, file = catalog.file(wish.controller)
    return Parcel(f"{run.path.name}-{file.stem}.zip", zipped(pack_files(file, RunDirectory(run.path))))
