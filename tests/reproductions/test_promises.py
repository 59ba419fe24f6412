"""Promises against the truth: eight pairs with tiny searches, and the instrument itself."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproductions.exact import linearise_exactly
from reproductions.families import make_pair
from reproductions.measuring import Effort, Record, exact_loop, measure, start_again
from reproductions.promise_summary import (
    draw,
    gain_is_right,
    half_width,
    holds,
    is_deserved,
    margins_are_right,
    summarize,
)
from reproductions.sketches import FAMILIES

from clearloop.controllers import Equation
from clearloop.data.log import last_rows
from clearloop.evaluation import evaluate
from clearloop.evaluation.rollouts import LoggedCost
from clearloop.methods.evolving import Rounds, Sample
from clearloop.methods.gprl import GPRL
from clearloop.methods.linear_model import identify
from clearloop.methods.lqr import LQR
from clearloop.networks import Training
from clearloop.plants.scenarios import Scenarios
from clearloop.search.gp.genome import GP
from clearloop.surrogate import BEST
from clearloop.task import Task
from reproductions import promises

SMALL = Sample(8, 1)
TINY = Effort(
    track=replace(BEST, search=1, judge=2, training=Training(hidden=(4,), epochs=4)),
    budget=100_000,
    methods=(
        LQR(),
        GPRL(
            gp=GP(islands=(11,), population=6, offspring=8),
            rounds=Rounds(race=SMALL, tune=SMALL, score=SMALL, final=SMALL),
        ),
    ),
    rows=600,
)
EIGHT = (0, 3, 6, 7, 8, 9, 10, 12)  # one of each kind of plant that differs much from the others


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [measure(number, TINY) | {"version": "tests"} for number in EIGHT]


def test_eight_pairs_give_a_promise_with_an_interval_and_a_truth(records: list[Record]) -> None:
    for record in records:
        assert record["low"] <= record["promise"] <= record["high"]
        assert min(record["judges"]) - 1e-9 <= record["promise"] <= max(record["judges"]) + 1e-9
        assert record["truth"] > 0
        assert record["method"] in ("lqr", "pid", "gprl")
        assert record["grade"] in ("good", "fair", "poor")
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_pair_is_the_same_whenever_it_is_measured(records: list[Record]) -> None:
    again = measure(EIGHT[0], TINY)
    for name in ("promise", "low", "high", "truth", "own", "formula", "margins"):
        assert again[name] == records[0][name]


def test_the_summary_has_a_line_for_each_family_and_fits_a_terminal(records: list[Record]) -> None:
    text = summarize(records)
    for record in records:
        assert f"\n{record['family']} " in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_figure_is_written(records: list[Record], tmp_path: Path) -> None:
    draw(records, tmp_path / "promises.png")
    assert (tmp_path / "promises.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_the_engineer_sees_only_the_log(number: int) -> None:
    pair = make_pair(number, rows=300)
    assert pair.task.plant is None
    assert pair.task.start_box is None
    assert pair.log.states.shape[1] == len(pair.task.states) < pair.seen.states.shape[1]
    assert (pair.log.states == pair.seen.states[:, : len(pair.task.states)]).all()
    assert pair.log.rewards is None


@pytest.mark.parametrize("number", [0, 24, 42])
def test_the_plant_repeats_the_log_from_any_row(number: int) -> None:
    """Nothing was added to these controllers and their sensors have no noise: there is one course only."""
    pair = make_pair(number)
    assert not any(name.endswith(("noise", "dither")) for name in pair.glass.signals)
    logged = LoggedCost(pair.task, pair.log)
    assert len(logged.rows) > 500
    assert pair.law is not None
    again = evaluate(pair.law, pair.glass, starts=Scenarios.logged(pair.glass, pair.seen, logged.rows))
    assert again.penalties[0] == pytest.approx(logged.penalties(np.arange(len(logged.rows))), rel=1e-6)


def test_only_noise_is_drawn_anew_for_the_truth() -> None:
    pair = make_pair(12)  # with a bad sensor
    names = pair.glass.scope.external
    rows = np.flatnonzero(~last_rows(pair.seen.episodes))
    then, now = Scenarios.logged(pair.glass, pair.seen, rows[:1]).script[0], start_again(pair).script[0]
    for column, name in enumerate(names):
        same = then[1:, column] == now[1:, column]
        assert same.all() if not name.endswith("_noise") else not same.any()
    assert "y_noise" in names


@pytest.mark.parametrize("number", [0, 1, 3, 4, 5, 8, 9, 12, 20, 24, 28, 32, 36])  # one of each family
def test_the_controllers_of_the_logs_are_stable(number: int) -> None:
    pair = make_pair(number)
    assert pair.linear is not None
    loop = exact_loop(pair, pair.linear)
    assert loop is not None
    assert loop.stable
    margins = loop.margins()
    assert margins is not None
    assert margins.gain > 1.5
    assert margins.phase > 25


FIRST_ORDER = Task.from_dict(
    {
        "name": "first",
        "dt": 0.5,
        "discount": 0.9,
        "horizon": 60,
        "history": 2,
        "states": {"y": {"setpoint": 3.0}},
        "actions": {"u": {"limits": [-10, 10]}},
        "reward": {"terms": [{"track": "y"}]},
        "starts": {"y": [0, 1]},
        "plant": {"substeps": 20, "derivative": {"y": "(2*u[t-1] - y)/4"}},
    }
)


def test_the_exact_linearisation_is_that_of_the_textbook() -> None:
    kp, pole = 1.5, np.exp(-0.5 / 4)
    law = Equation(outputs={"u": f"1.5 - {kp}*y"})
    loop = linearise_exactly(law, FIRST_ORDER, np.array([3.0]), np.array([1.0]), np.array([1.0]))
    assert loop is not None
    assert loop.static_gain() == pytest.approx(np.array([[2.0]]), rel=1e-6)
    import control

    textbook = control.tf([kp * 2 * (1 - pole)], [1, -pole, 0], 0.5)  # a sample, and a step of dead time
    gain, phase, _, crossing = control.margin(textbook)
    found = loop.margins()
    assert found is not None
    assert found.gain == pytest.approx(gain, rel=1e-3)
    assert found.phase == pytest.approx(phase, rel=1e-3)
    assert found.delay == pytest.approx(np.radians(phase) / crossing, rel=1e-3)


def test_a_law_that_reads_its_own_past_actions_reads_those_that_it_chose() -> None:
    law = Equation(outputs={"u": "2.25 - 1.5*y + 0.5*u[t-1]"})
    loop = linearise_exactly(law, FIRST_ORDER, np.array([3.0]), np.array([1.0]), np.array([1.0]))
    import control

    pole = np.exp(-0.5 / 4)
    plant, filtered = (
        control.tf([2 * (1 - pole)], [1, -pole, 0], 0.5),
        control.tf([1.5, 0], [1, -0.5], 0.5),
    )
    gain, phase, _, _ = control.margin(plant * filtered)
    found = loop.margins() if loop is not None else None
    assert found is not None
    assert [found.gain, found.phase] == pytest.approx([gain, phase], rel=1e-3)


def test_an_unstable_loop_has_no_margins_and_one_at_its_limit_no_slopes() -> None:
    far = Equation(outputs={"u": "20*y"})
    assert linearise_exactly(far, FIRST_ORDER, np.array([3.0]), np.array([3.0]), np.array([1.0])) is None
    restless = Equation(outputs={"u": "1.5 - 40*y"})
    assert linearise_exactly(restless, FIRST_ORDER, np.array([3.0]), np.array([1.0]), np.array([1.0])) is None


def test_a_lag_that_explains_much_counts_although_disturbances_move_free_runs() -> None:
    """An inverse response under PI control is no first-order plant with a dead time."""
    pair = make_pair(44)
    model = identify(pair.task, pair.log)
    assert model.equations.states.shape[1] >= 2
    assert model.equations.delays.tolist() == [[0]]
    assert identify(pair.task, pair.log) is model  # it is remembered
    assert identify(pair.task, pair.log, plain=True) is not model


# What is asked of a record.

RECORD: Record = {
    "pair": 0,
    "family": "first-order",
    "logger": "pi",
    "refusals": [],
    "methods": {"lqr": "", "pid": "no"},
    "promise": 2.0,
    "low": 1.8,
    "provisional": False,
    "high": 2.2,
    "truth": 2.1,
    "own": 3.0,
    "linear": {"gain": [[1.1]], "kind": ["settles"]},
    "margins": {"gain": [[1.0]], "own": {"true_stable": True, "true": {"gain": 20.0, "phase": 60.0}}},
    "seconds": {"model": 1.0},
}


def test_an_interval_holds_the_truth_or_not() -> None:
    assert holds(RECORD)
    assert not holds(RECORD | {"truth": 2.21})
    assert half_width(RECORD) == pytest.approx(0.1)


def test_a_refusal_is_deserved_if_the_pick_costs_more_than_what_was_there() -> None:
    assert is_deserved(RECORD | {"truth": 3.1})
    assert not is_deserved(RECORD)
    assert is_deserved(RECORD | {"own": None}) is None


def test_margins_are_compared_where_both_are_known_and_large_ones_are_equal() -> None:
    def of(**said: object) -> Record:
        own = RECORD["margins"]["own"] | {"log": {"stable": True, "gain_up": 11.0, "phase": 66.0} | said}
        return RECORD | {"margins": {"own": own}}

    assert margins_are_right(of())
    assert margins_are_right(of(gain_up=None))
    assert not margins_are_right(of(phase=80.0))
    assert not margins_are_right(of(gain_up=2.0))
    assert not margins_are_right(of(stable=False))
    assert margins_are_right(RECORD) is None


def test_what_the_sheet_calls_unknown_is_neither_right_nor_wrong() -> None:
    def of(name: str, **said: object) -> Record:
        own = RECORD["margins"]["own"] | {name: {"stable": True, "gain_up": 11.0, "phase": 80.0} | said}
        return RECORD | {"margins": {"own": own}}

    assert margins_are_right(of("log", unknown=["phase"]))
    assert margins_are_right(of("log", unknown=["gain_up", "phase"])) is None
    assert not margins_are_right(of("model", unknown=[]))  # the models have the word where the log is silent
    assert gain_is_right(RECORD)
    assert not gain_is_right(RECORD | {"linear": {"gain": [[1.3]], "kind": ["settles"]}})
    assert gain_is_right(RECORD | {"linear": {"gain": [[None]], "kind": ["settles"]}}) is None
    assert not gain_is_right(RECORD | {"linear": {"gain": [[None]], "kind": ["integrates"]}})


# The command.


def test_records_are_kept_until_the_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def measured(number: int, effort: Effort) -> Record:
        assert effort == Effort()
        asked.append(number)
        return RECORD | {"pair": number}

    monkeypatch.setattr(promises, "measure", measured)
    monkeypatch.setattr(promises, "version", lambda: "one")
    command = ["--pairs", "3", "--jobs", "1", "--folder", str(tmp_path)]
    assert promises.main(command) == 0
    assert promises.main([*command[:1], "4", *command[2:]]) == 0
    assert asked == [0, 1, 2, 3]
    monkeypatch.setattr(promises, "version", lambda: "two")
    assert promises.main([*command, "--show"]) == 0
    assert promises.main([*command, "--stale"]) == 0
    assert asked == [0, 1, 2, 3]
    assert promises.main(["--only", "2", *command[2:]]) == 0
    assert asked == [0, 1, 2, 3, 2]
    kept = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert [(one["pair"], one["version"]) for one in kept] == [(0, "one"), (1, "one"), (2, "two"), (3, "one")]
    assert promises.main(["--only", "2", "--again", *command[2:]]) == 0
    assert asked == [0, 1, 2, 3, 2, 2]
    assert "The log's own controller is called unstable: 0 of 1" in capsys.readouterr().out


def test_a_pair_that_crashes_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(number: int, effort: Effort) -> Record:
        if number == 1:
            raise ZeroDivisionError(f"with a budget of {effort.budget}")
        return RECORD | {"pair": number}

    monkeypatch.setattr(promises, "measure", measured)
    assert promises.main(["--pairs", "3", "--jobs", "1", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "second-order CRASHED: ZeroDivisionError: with a budget" in said
    assert "CRASHED, and left out above: 1." in said
    assert "\nall               2 " in said


def test_damaged_records_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.jsonl").write_text("{", encoding="utf-8")
    assert promises.main(["--show", "--folder", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", [["--pairs", "0"], ["--only", "a"], ["--family", "none"]])
def test_wrong_arguments_have_exit_code_two(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        promises.main(words)
    assert stopped.value.code == 2


def test_the_version_is_that_of_the_code() -> None:
    assert promises.version() == promises.version()
    assert len(promises.version()) == 12
