"""Both engines keep the same promises, also when workers die."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clearloop.bench.engines import TRIES, Call, Dask, Engine, Failure, Local
from clearloop.errors import ClearloopError
from tests.bench.work import die_at_first, fail, square, tries

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture(params=[Local, Dask])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made: Engine = request.param(workers=2)
    yield made
    made.close()


def test_all_that_was_asked_is_answered(engine: Engine) -> None:
    calls = {f"number-{n}": Call(square, (n,)) for n in range(5)}
    assert dict(engine.run(calls)) == {f"number-{n}": n**2 for n in range(5)}
    assert dict(engine.run({})) == {}
    assert dict(engine.run({"again": Call(square, (7,))})) == {"again": 49}


def test_what_fails_three_times_is_given_up_and_the_rest_goes_on(engine: Engine, tmp_path: Path) -> None:
    calls = {"bad": Call(fail, (tmp_path,)), "good": Call(square, (3,))}
    assert dict(engine.run(calls)) == {"bad": Failure("ValueError: two lines"), "good": 9}
    assert tries(tmp_path) == TRIES


@posix
def test_a_piece_whose_worker_dies_is_done_by_another(engine: Engine, tmp_path: Path) -> None:
    calls = {"mortal": Call(die_at_first, (tmp_path, 1)), "good": Call(square, (3,))}
    assert dict(engine.run(calls)) == {"mortal": "alive", "good": 9}
    assert tries(tmp_path) == 2


@posix
def test_what_kills_every_worker_is_given_up(tmp_path: Path) -> None:
    engine = Local(workers=1)
    (found,) = engine.run({"deadly": Call(die_at_first, (tmp_path, 99))})
    assert found == ("deadly", Failure("its process died, with exit code -9"))
    assert tries(tmp_path) == TRIES


def test_benches_share_a_cluster_but_no_results() -> None:
    with closing(Dask(workers=1)) as one, closing(Dask(one.client.scheduler.address)) as other:
        found = [*one.run({"a": Call(square, (2,))}), *other.run({"a": Call(square, (3,))})]
        rest = one.run({"kept": Call(square, (4,)), "b": Call(square, (5,))})
        found.append(next(rest))
        assert dict(other.run({"kept": Call(square, (6,)), "b": Call(square, (7,))})) == {"kept": 36, "b": 49}
    assert found[:2] == [("a", 4), ("a", 9)]


def test_where_no_scheduler_answers() -> None:
    with pytest.raises(ClearloopError, match=r"--engine dask:tcp://127.0.0.1:9: no scheduler answers there"):
        Dask("tcp://127.0.0.1:9")
