"""The front on the screen: figures, formulas that a person can take in, and what it all comes to."""

from dataclasses import replace
from pathlib import Path

import pytest

from clearloop.cli.show import print_front
from clearloop.pages.sentences import headline
from clearloop.runs import Entry, Front, Judged, PublishedEntry, RunDirectory
from clearloop.runs.front import Before, Beside, Trusted

LONG = "93.456*theta + 24.0123*theta_dot + 9.8765*min(rho, 0.00012345*rho_dot) - 1234.5678*tanh(rho)"


def entry(number: int, method: str, complexity: int, model: float, system: float | None, text: str) -> Entry:
    failures = None if system is None else 0.0625
    return Entry(f"{number:03d}", method, complexity, model, 0.1, system, system and 0.1, failures, text)


def write(folder: Path, entries: list[Entry], published: list[PublishedEntry] | None = None) -> RunDirectory:
    """As `learn` leaves it; the last is the best, and the last but one the pick."""
    judged = [
        Judged(
            row.controller,
            5.0 - n,
            0.1,
            float(len(entries) - 1 - n) / 1e3,
            0.0015 if n >= len(entries) - 2 else 0,
        )
        for n, row in enumerate(entries)
    ]
    run = RunDirectory(folder)
    Front(tuple(entries), tuple(judged), tuple(published or ())).write(run)
    asked = {"command": "learn", "task": "x", "methods": {}, "budget": 1, "track": "best", "seed": 0}
    task = {"name": "x", "actions": {"force": {"unit": "N", "limits": [-10, 10]}}}
    pick = {"controller": entries[-2].controller, "reason": "a reason that goes on for quite some while " * 3}
    data = {"fingerprint": "0", "summary": "none"}
    parts = {"status": "finished", "asked": asked, "data": data, "versions": {}, "task": task, "pick": pick}
    run.write_json("run.json", parts)
    return run


def printed(run: RunDirectory, width: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        print_front(run)
    return capsys.readouterr().out.splitlines()


def test_with_a_plant_and_published_controllers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        entry(1, "gprl", 3, 19.41, 19.62, "70*theta"),
        entry(2, "gprl", 15, 2.81, 2.86, "77.77*theta + 1e-05*rho"),
        entry(3, "gprl", 31, 2.5, 2.55, LONG),
    ]
    known = [
        PublishedEntry("gprl", "GPRL equation", 2.87, 2.9028, 0.065, True),
        PublishedEntry("none", "no force", 20, 19, 1, False),
    ]
    lines = printed(write(tmp_path, entries, known), 80, capsys)
    assert lines[:3] == [
        "The best controller, 003, costs 2.55 on the plant: 87 % less than the simplest",
        "and 12 % less than the best published, the GPRL equation.",
        "",
    ]
    assert lines[3:11] == [
        "no.  complexity  promised  on plant  failures  controller (force in N)",
        "001           3     19.41     19.62     6.2 %",
        "     70*theta",
        "002          15      2.81      2.86     6.2 %  <- pick",
        "     77.8*theta + 1e-05*rho",
        "003          31      2.50      2.55     6.2 %",
        "     93.5*theta + 24*theta_dot + 9.88*min(rho, 0.000123*rho_dot)",
        "       - 1235*tanh(rho)",
    ]
    assert lines[11:13] == ["", "Published  GPRL equation 2.90 on the plant"]
    assert "Promise    the pick promises 2.81 and costs 2.86 on the plant, 1.8 % more; over" in lines
    assert "           the front, plant and promise are at most 2.0 % apart" in lines
    assert lines[-1] == f"In words   clearloop show {tmp_path}/controllers/002.json"
    assert max(map(len, lines[:-1])) <= 80


def test_without_a_plant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [entry(1, "gprl", 3, 19.41, None, "70*theta"), entry(2, "gprl", 5, 2.81, None, LONG)]
    lines = printed(write(tmp_path, entries), 80, capsys)
    assert lines[0] == "The best controller, 002, promises 2.81: 86 % less than the simplest."
    assert lines[2] == "no.  complexity  promised  controller (force in N)"
    assert not any("Promise" in line or "Published" in line or "plant" in line for line in lines[:-1])
    assert max(map(len, lines[:-1])) <= 80


def test_several_methods_have_their_names_above_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = "if theta~0.2 and rho~0.5 then +0.9; if theta~-0.2 and rho~-0.5 then -0.9"
    entries = [
        entry(1, "fpsrl", 9, 3, 3, rules),
        entry(2, "gprl", 3, 4, 4, "x"),
        entry(3, "gprl", 5, 2, 2, "y"),
    ]
    lines = printed(write(tmp_path, entries), 80, capsys)
    table = lines[lines.index("fpsrl") :]
    assert [line.lstrip() for line in table[1:5]] == [
        "001           9      3.00      3.00     6.2 %  if theta~0.2 and rho~0.5 then",
        "+0.9",
        "if theta~-0.2 and rho~-0.5 then",
        "-0.9",
    ]
    assert table[5] == "gprl"


def test_penalties_that_are_gains_are_compared_by_their_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [entry(1, "gprl", 3, 1.0, 1.5, "x"), entry(2, "gprl", 5, -2.0, -1.0, "y")]
    lines = printed(write(tmp_path, entries), 100, capsys)
    assert lines[0] == "The best controller, 002, costs -1.00 on the plant: 2.50 less than the simplest."
    assert "Promise    the pick promises 1.00 and costs 1.50 on the plant" in lines


@pytest.mark.parametrize("width", [40, 60, 72, 80, 120])
def test_it_fits_any_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], width: int) -> None:
    entries = [entry(n, "gprl", n, 2.0, 2.0, LONG) for n in (1, 2, 3)]
    lines = printed(write(tmp_path, entries), width, capsys)
    assert max(len(line) for line in lines[:-1] if not line.startswith(("00", "no."))) <= width
    assert LONG.count("theta") == sum(line.count("theta") for line in lines) / 3


def test_a_planner_stands_beside_the_others_from_its_own_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [
        entry(1, "lqr", 11, 3.1, 3.2, "70*theta"),
        entry(2, "gprl", 15, 2.81, 2.86, "77.77*theta + 1e-05*rho"),
        entry(3, "pso-p", 2048, 2.1, 2.2, "plans 60 steps ahead"),
    ]
    known = [PublishedEntry("gprl", "GPRL equation", 2.87, 2.9028, 0.065, True)]
    beside = [Beside(name, name == "003", 128, 2.5, 2.4 + 0.1 * n, 0.1) for n, name in
              enumerate(("001", "002", "003", "gprl"))]  # fmt: skip
    run = write(tmp_path, entries, known)
    front = Front.read(run)
    judged = (*front.judged[:2], replace(front.judged[2], readable=False))
    Front(front.entries, judged, front.published, tuple(beside)).write(run)
    lines = printed(run, 80, capsys)
    assert lines[0].startswith("The best controller that can be read, 002, costs 2.86 on the plant: 11 %")
    at = next(n for n, line in enumerate(lines) if line.startswith("Planner"))
    assert lines[at : at + 3] == [
        "Planner    003 makes a new plan at every step; its figures are from the first",
        "           128 starts; from the same starts, others cost: 002 2.50, GPRL",
        "           equation 2.70",
    ]


@pytest.mark.parametrize(
    ("promised", "expected"), [(2.0, "than the log, from the same rows."), (4.0, "keep that.")]
)
def test_what_is_no_better_than_the_log_says_so(promised: float, expected: str) -> None:
    entries = (entry(1, "gprl", 3, 4.5, None, "theta"), entry(2, "gprl", 5, promised, None, "2*theta"))
    judged = tuple(Judged(row.controller, row.penalty_model, 0.1, 0.0, 0.0) for row in entries)
    rows = [Trusted(row.controller, row.penalty_model, 0.0, 0.0, row.penalty_model) for row in entries]
    assert headline(Front(entries, judged, ()), rows, Before("log", 3.0, 256)).endswith(expected)


@pytest.mark.parametrize(
    ("robust", "expected"),
    [
        (False, "None of 1 controller keeps the margins that [robust] of the task asks for, so none is fit"),
        (None, "is not known (001: it does not come to rest), so none is fit to be switched on without"),
    ],
)
def test_margins_that_are_not_known_are_not_called_too_small(robust: bool | None, expected: str) -> None:
    one = replace(entry(1, "gprl", 3, 4.5, None, "theta"), robust=robust)
    judged = Judged(one.controller, one.penalty_model, 0.1, 0.0, 0.0, fit=False)
    row = Trusted(one.controller, 4.5, 0.0, 0.0, 4.5, margins="it does not come to rest")
    said = headline(Front((one,), (judged,), ()), [row], Before("log", 3.0, 256))
    assert expected in said
    assert said.endswith("The best, 001, promises 4.50.")
