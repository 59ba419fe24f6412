"""What a bench begins with, and how far it has come."""

from pathlib import Path

import pytest

from clearloop.bench.engines import Failure
from clearloop.bench.experiment import Store
from clearloop.bench.table import Bench, Course
from clearloop.registry import METHODS
from clearloop.runs import Request, RunDirectory
from clearloop.task import Task

TASK = Task.load("cartpole")


def make(budget: float) -> Bench:
    methods = tuple(METHODS[name]() for name in ("lqr", "nfq", "fgprl", "gprl", "cloning"))
    request = Request(
        command="bench", task="cartpole", methods=methods, budget=int(budget), track="best", seed=0
    )
    return Bench(request=request, seeds=2, fresh=False)


@pytest.mark.parametrize(
    ("budget", "order"),
    [(6e9, ["fgprl", "gprl", "cloning", "nfq", "lqr"]), (1e9, ["nfq", "fgprl", "gprl", "cloning", "lqr"])],
)
def test_the_slowest_are_begun_first(budget: float, order: list[str]) -> None:
    assert [work.method for work in make(budget).experiments(TASK)[::2]] == order


def test_the_share_of_the_effort(tmp_path: Path) -> None:
    course = Course(make(6e9), TASK, Store(RunDirectory(tmp_path)))
    assert (course.share, course.done, course.total) == (0.0, 0, 11)
    for number in range(2):
        course.failed[f"best-lqr-{number}"] = Failure("no gains")
    assert 0 < course.share < 0.02
    for work in course.bench.experiments(TASK):
        course.failed[work.key] = Failure("out of memory")
    assert 0.97 < course.share < 1  # the model is left
    course.failed["best-model-0"] = Failure("no data")
    assert course.share == 1
