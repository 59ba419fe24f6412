"""Going on with a run: what was asked stays as it was, and what is given again must agree with it."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clearloop.cli.options import parse_budget
from clearloop.cli.settings import configure
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.data import Batch
    from clearloop.runs import Request, RunDirectory
    from clearloop.task import Task


class Given(NamedTuple):
    """Options of `learn`, some of them of `bench`, too; None or empty where they were not given."""

    data: tuple[Path, ...] = ()
    methods: tuple[str, ...] = ()
    budget: str | None = None
    track: str | None = None
    seed: int | None = None
    settings: tuple[str, ...] = ()
    value: str | None = None


def go_on(run: "RunDirectory", task: "Task", given: Given) -> "tuple[Request, Batch]":
    """What was asked, and the batch; an error that names what does not agree with it."""
    from clearloop.runs import Request, agreement

    description = run.describe()
    agreement.check_command(run, description["asked"], "learn", "demo")
    try:
        request = Request.from_dict(description["asked"])
    except ClearloopError as error:
        raise ClearloopError(f"{run.path}: cannot go on: {error}") from error
    if description["status"] != "finished":
        agreement.check_version(run, description["versions"])
    agreement.check_task(run, description["task"], task)
    check_given(run, request, given)
    return request, _batch(run, task, request, given, description["data"]["fingerprint"])


def check_given(run: "RunDirectory", request: "Request", given: Given) -> None:
    """All but the data."""
    from clearloop.runs import agreement

    names = tuple(method.name for method in request.methods)
    if given.methods:
        agreement.check_option(run, "--method", names, tuple(dict.fromkeys(given.methods)))
    if given.budget is not None:
        agreement.check_option(run, "--budget", request.budget, parse_budget(given.budget))
    if given.track is not None:
        agreement.check_option(run, "--track", request.track, given.track)
    if given.value is not None:
        agreement.check_option(run, "--value", request.value, given.value)
    if given.seed is not None:
        agreement.check_option(run, "--seed", request.seed, given.seed)
    agreement.check_settings(run, request.methods, configure(request.methods, given.settings))


def _batch(run: "RunDirectory", task: "Task", request: "Request", given: Given, fingerprint: str) -> "Batch":
    """The run's own copy; found again if the run was stopped before it was made."""
    from clearloop.cli.model import find_batch, manageable
    from clearloop.data import Batch
    from clearloop.runs import agreement

    if given.data:
        files = ", ".join(map(str, given.data))
        agreement.check_data(run, fingerprint, manageable(task, Batch.load(given.data, task)), files)
    copy = run.path / "batch.parquet"
    if copy.exists():
        batch = Batch.load(copy, task)
    else:
        batch = manageable(task, find_batch(task, [Path(file) for file in request.data], request.seed))
        batch.save(copy)
    agreement.check_data(run, fingerprint, batch, ", ".join(request.data) or str(copy))
    return batch
