"""Which entry of a front is the pick, and what a front is read from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Linear
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.plants.scenarios import Scenarios
from clearloop.runs import Front, RunDirectory
from clearloop.runs.front import Before, Beside, Entry, Judged, PublishedEntry, _before, judging_starts
from tests.methods.linear_plants import make_log, make_model, make_task
from tests.methods.test_lqr import U, V

LIKELY = (1, 2.0), (2, 1.5), (3, 1.0), (4, 1.0)
"""Complexities and penalties, each from the best of its kind."""


def front(*fits: bool | None, readable: tuple[int, ...] = (0, 1, 2, 3)) -> Front:
    """Four entries; only the fourth is as good as the third, and the second is 0.5 ± 0.5 worse."""
    entries, judged = [], []
    for k, ((complexity, penalty), fit) in enumerate(zip(LIKELY, fits, strict=True)):
        name = f"{k + 1:03d}"
        entries.append(
            Entry(name, "gprl", complexity, penalty, None, None, None, None, "x", robust=fit if fit else None)
        )
        judged.append(Judged(name, penalty, 0.1, penalty - 1.0, 0.5, k in readable, fit))
    return Front(tuple(entries), tuple(judged))


@pytest.mark.parametrize(
    ("fits", "shown", "chosen"),  # the simplest, the pick, the best
    [
        ([None] * 4, [0, 1, 2, 3], (0, 1, 2)),
        ([True] * 4, [0, 1, 2, 3], (0, 1, 2)),
        ([False, False, True, True], [2, 3], (2, 2, 2)),
        ([True, False, True, False], [0, 2], (0, 2, 2)),
        ([True, False, False, None], [0, 3], (0, 3, 3)),  # not to know is not to lack
        ([False] * 4, [0, 1, 2, 3], (0, 1, 2)),
    ],
)
def test_only_what_is_fit_is_picked(
    fits: list[bool | None], shown: list[int], chosen: tuple[int, int, int]
) -> None:
    found = front(*fits)
    assert found.shown == shown
    assert (found.simplest, found.pick, found.best) == chosen
    assert found.asked is (fits != [None] * 4)


@pytest.mark.parametrize(
    ("readable", "fits", "chosen"),
    [
        ((0, 1), [True] * 4, (0, 1, 1)),
        ((0, 1), [False, False, True, True], (0, 1, 1)),  # a readable one without margins is preferred
        ((), [None] * 4, (0, 1, 2)),
        ((3,), [None] * 4, (3, 3, 3)),
    ],
)
def test_what_can_be_read_comes_first(
    readable: tuple[int, ...], fits: list[bool | None], chosen: tuple[int, int, int]
) -> None:
    found = front(*fits, readable=readable)
    assert (found.simplest, found.pick, found.best) == chosen


def test_of_two_that_are_equally_simple_the_better_one_is_picked() -> None:
    found = front(None, None, None, None)
    entries = [replace(entry, complexity=3) for entry in found.entries]
    assert replace(found, entries=tuple(entries)).pick == 2
    judged = (*found.judged[:2], replace(found.judged[2], penalty=1.2), found.judged[3])
    assert replace(found, entries=tuple(entries), judged=judged).pick == 3


def test_without_an_error_only_the_best_is_close() -> None:
    found = front(None, None, None, None)
    judged = tuple(replace(row, extra_se=None) for row in found.judged)
    assert replace(found, judged=judged).pick == 2


def test_the_reason_says_what_the_pick_was_chosen_among() -> None:
    assert front(None, None, None, None).reason("9 starts") == (
        "the simplest that cannot be told from the best, 003: on 9 starts it costs 0.5 ± 0.5 more"
    )
    assert front(True, True, True, True).reason("9 starts").startswith("the simplest robust one that cannot")
    assert front(False, False, True, True).reason("9 starts").startswith("the best robust one on 9 starts; ")
    assert front(False, False, False, False).reason("9 starts").startswith("the simplest that cannot")


# Files.

KNOWN = PublishedEntry("lqr", "LQR", 1.5, 1.25, 0.1, in_paper=True)


def written(folder: Path, front: Front) -> RunDirectory:
    front.write(RunDirectory(folder))
    return RunDirectory(folder)


def planned(*names: str) -> tuple[Beside, ...]:
    return tuple(Beside(name, name == "002", 64, 1.0, None, None) for name in names)


def test_planners_are_known_by_their_scores(tmp_path: Path) -> None:
    whole = replace(
        front(None, None, None, None), published=(KNOWN,), planned=planned("001", "002", "003", "004", "lqr")
    )
    assert Front.read(written(tmp_path, whole)) == whole
    assert whole.planners == [1]
    assert front(None, None, None, None).planners == []


@pytest.mark.parametrize("names", [("001", "002", "003", "004"), ("001", "002", "003", "lqr")])
def test_scores_beside_planners_name_every_controller(tmp_path: Path, names: tuple[str, ...]) -> None:
    whole = replace(front(None, None, None, None), published=(KNOWN,), planned=planned(*names))
    with pytest.raises(ClearloopError, match=r"planned\.csv: damaged: it does not name every controller"):
        Front.read(written(tmp_path, whole))


def test_a_front_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    whole = front(None, None, None, None)
    for damaged, said in (
        (replace(whole, judged=whole.judged[::-1]), "name different controllers"),
        (replace(whole, entries=(), judged=()), "it has no rows"),
        (
            replace(whole, judged=tuple(replace(row, extra=9.0) for row in whole.judged)),
            "no controller is close to the best",
        ),
    ):
        with pytest.raises(ClearloopError, match=said):
            Front.read(written(tmp_path, damaged))


# The control before.

TASK = make_task(2)


def test_rows_of_the_log_say_what_it_cost() -> None:
    model, log = make_model(TASK, U, V), make_log(TASK, U, V)
    assert _before(TASK, log, model, np.array([1.0, 3.0])) == Before(
        "log", 2.0, 2, "the cost of the logged actions, from 2 rows of the log"
    )


def test_a_short_log_of_random_actions_has_no_control_before() -> None:
    found = _before(TASK, make_log(TASK, U, V), make_model(TASK, U, V), np.zeros(0))
    assert found == Before(
        "none", None, 0, "no stretch of the log is as long as the horizon, and no law explains its actions, "
        "so there is nothing to compare with",
    )  # fmt: skip


def test_a_short_log_of_a_law_has_the_cost_of_that_law_on_the_model() -> None:
    log = make_log(TASK, U, V)
    log = Batch(
        log.columns,
        log.states,
        np.clip(log.states @ [[-0.5], [-0.3]], -1, 1),
        log.episodes,
        log.terminal,
    )
    model = make_model(TASK, U, V)
    found = _before(TASK, log, model, np.zeros(0))
    law = Linear(gains={"u0": {"x0": -0.5, "x1": -0.3}}).for_task(TASK)
    wanted = evaluate(law, TASK, surrogate=model, members=model.judge_members, starts=Scenarios.scoring(TASK))
    assert found.kind == "law"
    assert found.penalty == pytest.approx(wanted.penalty, rel=1e-6)
    assert found.starts == len(Scenarios.scoring(TASK))
    assert found.text == (
        "the law that explains the log (100 % of u0), on the model; no stretch of the log is as long as the "
        "horizon"
    )


def test_the_starts_that_judge_follow_from_the_seed_of_the_run(tmp_path: Path) -> None:
    log = make_log(TASK, U, V)
    drawn = []
    for number, seed in enumerate(({}, {"seed": 0}, {"seed": 1})):
        run = RunDirectory(tmp_path / str(number))
        run.path.mkdir()
        run.begin(TASK, log, {"command": "other", **seed})
        drawn.append(judging_starts(run, TASK, log, 5).starts)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
