"""A few kills of `tests/kills.py`, and that it sees what a kill would spoil."""

import os
from pathlib import Path

import pytest

from tests.kills import Campaign, differences, left_in, without_times


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_commands_that_are_killed_and_run_again_leave_the_same_files(tmp_path: Path) -> None:
    """At a file operation of each command, and at a random time of the shorter one."""
    campaign = Campaign(tmp_path, seed=1, commands=("learn", "export"))
    kills = [campaign.kill(number) for number in (0, 1, 3)]
    assert [(kill.command, kill.outcome) for kill in kills] == [
        ("learn", "same"), ("export", "same"), ("export", "same"),
    ]  # fmt: skip
    assert [kill.moment.startswith("operation") for kill in kills] == [True, True, False]


def test_missing_further_and_other_files_are_seen(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "run").mkdir(parents=True)
        (tmp_path / folder / "run" / "front.csv").write_text("a\n1\n")
    one, two = tmp_path / "one", tmp_path / "two"
    assert differences(left_in(one), left_in(two)) == []
    (one / "run" / "front.csv").write_text("a\n2\n")
    (one / "run" / ".front.csv.7.partial").touch()
    (two / "run" / "report.html").touch()
    assert differences(left_in(one), left_in(two)) == [
        "run/report.html is missing",
        "run/.front.csv.7.partial is too much",
        "run/front.csv differs",
    ]


@pytest.mark.parametrize(
    ("name", "one", "other", "third"),
    [
        ("run/run.json", '{"begun": "2026-01-01", "seed": 1}', '{"begun": "x", "seed": 1}', '{"seed": 2}'),
        ("run/timing.csv", "phase,seconds\na,1.5\n", "phase,seconds\na,2.5\n", "phase,seconds\nb,1.5\n"),
        ("run/progress.csv", "steps,seconds\n7,1.5\n", "steps,seconds\n7,9\n", "steps,seconds\n8,1.5\n"),
        ("run/report.html", "<p>2026-01-01 10:00 UTC", "<p>2026-01-02 11:30 UTC", "<b>2026-01-01 10:00 UTC"),
        ("b/experiments/x.json", '{"seconds": 1.5}', '{"seconds": 2e-05}', '{"steps": 1.5}'),
    ],
)
def test_only_dates_and_seconds_may_differ(name: str, one: str, other: str, third: str) -> None:
    assert without_times(name, one.encode()) == without_times(name, other.encode())
    assert without_times(name, one.encode()) != without_times(name, third.encode())


def test_in_other_files_every_byte_counts() -> None:
    for name in ("run/front.csv", "run/card-001.html", "law.c", "run/controllers/001.json"):
        assert without_times(name, b'"begun": "2026-01-01 10:00 UTC"') == b'"begun": "2026-01-01 10:00 UTC"'
