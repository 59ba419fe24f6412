"""The parts of a shadow, one by one: its counts, its figure, its guards, its promise."""

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Equation
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.exports import export
from clearloop.exports.guard import STATUS
from clearloop.pages.shadow_report import clock_time
from clearloop.runs import shadow
from clearloop.runs.feeds import Sample
from clearloop.runs.shadow import Block, Counts, Course, Promise, Shadow, needed_states
from clearloop.task import Task
from clearloop.verification import st
from tests.runs.test_shadow import LAW, PLAIN, PLAIN_LAW, TASK, TOML, boiler

# Counts and courses.


def test_differences_are_counted_with_their_sum_their_squares_and_the_largest() -> None:
    counts = Counts()
    for difference in (1.0, -3.0, 4.0):
        counts.differ("u", difference)
    assert counts.differences == {"u": [3, 2.0, 26.0, 4.0]}
    counts.gap(0.5)
    counts.gap(2.0)
    assert (counts.gaps, counts.missing) == (2, 2.5)


def test_a_course_merges_neighbours_when_it_has_too_many_points() -> None:
    course = Course(most=4)
    rows = [[float(k), float(-k * k)] for k in range(19)]
    for time, row in enumerate(rows):
        course.add(float(time), row)
    assert course._each == 8
    assert [when for when, _, _ in course.points] == [0.0, 8.0, 16.0]
    for (first, low, high), last in zip(course.points, (7, 15, 18), strict=True):
        assert low.tolist() == [first, -float(last**2)]
        assert high.tolist() == [last, -float(first**2)]


def test_a_course_of_few_points_is_whole() -> None:
    course = Course(most=4)
    for time in range(4):
        course.add(float(time), [math.nan if time == 2 else 1.0])
    assert [when for when, _, _ in course.points] == [0.0, 1.0, 2.0, 3.0]
    course.add(4.0, [5.0])
    assert [(when, low[0], high[0]) for when, low, high in course.points] == [
        (0.0, 1.0, 1.0), (2.0, 1.0, 1.0), (4.0, 5.0, 5.0),  # what is no number is left out
    ]  # fmt: skip


# The block that runs beside the plant, and what a controller needs.


def reasons(checks: str, values: list[float]) -> list[str]:
    """Why the values of a sensor, half a second apart, are not trusted."""
    task = Task.from_toml(
        TOML.replace("dt = 0.1", "dt = 0.5").replace("range = [-50, 50], frozen = 2.0", checks)
    )
    block = Block(Equation(outputs={"flame": "-2*heat"}).for_task(task))
    return [block.step({"heat": value}, {"heat": 1.0})[1].get("heat", "") for value in values]


def test_a_value_is_frozen_after_so_many_seconds() -> None:
    assert reasons("frozen = 1.0", [7, 7, 7, 7, 7, 8, 8]) == ["", "", "", "frozen", "frozen", "", ""]


def test_a_value_is_too_fast_by_its_change_in_a_second() -> None:
    assert reasons("gradient = 4.0", [0, 2, 4.5, 2.5, 0.4]) == ["", "", "too fast", "", "too fast"]


def test_a_spike_that_lasts_is_not_trusted_until_it_may_be_true() -> None:
    found = reasons("gradient = 4.0", [0, 7, 7, 7, 7])
    assert found == ["", "too fast", "too fast", "too fast", ""]  # 7 in four steps of 2


def test_a_range_belongs_to_its_limits() -> None:
    assert reasons("range = [-5, 5]", [-5, 5, -5.1, 5.1]) == ["", "", "out of range", "out of range"]
    assert reasons("range = [-5, 5]", [math.nan, 1e300]) == ["no number", "too large"]


LAWS = ("-2*heat - 3*(heat - heat[t-1])", "-2*heat - 0.1*total + 0.3*flame[t-1]")


@pytest.mark.parametrize("law", LAWS)
def test_if_nobody_else_acts_it_is_the_exported_block(tmp_path: Path, law: str) -> None:
    """Also while the sensor is broken, and when it is well again: no derivative sees the gap."""
    checks = "range = [-5, 6], gradient = 6.0, frozen = 0.3"
    task = Task.from_toml(TOML.replace("range = [-50, 50], frozen = 2.0", checks))
    controller = Equation(outputs={"flame": law}).for_task(task)
    block = st.Block(export(controller, to="st")["controller.st"])
    rng, heat, wanted, statuses = np.random.default_rng(5), 0.5, [], set()
    with Shadow(controller, task, tmp_path) as beside:
        for row in range(600):
            heat = float(np.clip(heat + rng.normal(scale=0.3), -5.5, 6.5)) if row % 50 < 45 else heat
            seen = math.nan if row % 70 in range(20, 25) or row % 100 in range(60, 80) else heat
            beside.take(Sample(row / 10, {"heat": seen}))
            answer = block.step({"heat": seen, "heat_setpoint": 1.0})
            assert beside.shown["flame"] == pytest.approx(answer["flame"], abs=1e-9)
            statuses |= {name for name, (bit, _) in STATUS.items() if int(answer["status"]) & bit}
            wanted.append(answer["flame"])
    assert statuses >= {"outside", "gradient", "frozen", "held", "safe"}
    assert len(set(wanted)) > 100


def test_of_what_others_do_it_takes_the_past_actions_and_the_last_one(tmp_path: Path) -> None:
    controller = Equation(outputs={"flame": "-heat + 0.5*flame[t-1]"}).for_task(PLAIN)
    with Shadow(controller, PLAIN, tmp_path) as beside:
        found = []
        for row, flame in enumerate((2.0, 4.0, 6.0)):
            beside.take(Sample(row / 10, {"heat": 1.0 + row, "flame": flame}))
            found.append(beside.shown["flame"])
        assert found == [0.0, -1.0 + 1.0, -2.0 + 2.0]
        beside.take(Sample(0.3, {"heat": math.nan, "flame": 9.0}))
        assert beside.shown["flame"] == 6.0  # the last action on the plant is held


def test_what_is_derived_needs_what_it_is_derived_from() -> None:
    derived = (
        'other = {}\ntwice = { formula = "2*heat + other" }\ntotal = { formula = "total[t-1] + twice" }\n'
    )
    task = Task.from_toml(
        TOML.replace('total = { formula = "clip(total[t-1] + heat.error, -100, 100)" }', derived)
    )
    assert needed_states(Equation(outputs={"flame": "total"}), task) == {"heat", "other"}
    assert needed_states(Equation(outputs={"flame": "other"}), task) == {"other"}
    assert needed_states(Equation(outputs={"flame": "flame[t-1]"}), task) == set()


def test_a_state_that_nobody_reads_need_not_be_given(tmp_path: Path) -> None:
    """Nor what follows from it; also after a restart."""
    derived = 'wind = {}\nblown = { formula = "clip(blown[t-1] + wind, -5, 5)" }\ntotal = {'
    task = Task.from_toml(TOML.replace("total = {", derived))
    law = Equation(outputs={"flame": "-2*heat - 0.1*total"}).for_task(task)
    assert needed_states(law, task) == {"heat"}
    shown = []
    for rows in ((0, 1, 2), (3, 4)):
        with Shadow(law, task, tmp_path) as beside:
            for row in rows:
                beside.take(sample(row))
                shown.append(beside.shown["flame"])
                assert math.isnan(beside.seen["blown"])
    totals = np.cumsum([row - 0.5 for row in range(5)])
    assert shown == pytest.approx([-2 * (row - 0.5) - 0.1 * total for row, total in enumerate(totals)])


# Samples.


def sample(row: int, **values: float) -> Sample:
    return Sample(row / 10, {"heat": 0.5 + row, "flame": 1.0, **values})


def test_a_sample_that_is_not_newer_is_left_out(tmp_path: Path) -> None:
    with Shadow(LAW, TASK, tmp_path) as beside:
        assert [beside.take(sample(row)) for row in (3, 4, 4, 2, 5)] == [True, True, False, False, True]
        assert beside.counts.samples == 3
        assert (beside.counts.first, beside.counts.last) == (0.3, 0.5)
    with pytest.raises(ValueError, match="closed"):
        beside.take(sample(6))


def test_every_row_is_in_the_file_at_once(tmp_path: Path) -> None:
    with Shadow(LAW, TASK, tmp_path) as beside:
        for row in range(3):
            beside.take(sample(row))
            assert (tmp_path / "shadow.csv").read_bytes().count(b"\n") == row + 2


def test_of_what_happened_only_the_latest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "MOST_EVENTS", 3)
    with Shadow(LAW, TASK, tmp_path) as beside:
        for number in range(5):
            beside.tell(f"{number}")
        assert [one.text for one in beside.events] == ["2", "3", "4"]
        assert beside.told == 5


def test_a_setpoint_that_is_measured_counts_before_the_fixed_one(tmp_path: Path) -> None:
    with Shadow(LAW, TASK, tmp_path / "folders" / "are made") as beside:
        beside.take(sample(0))
        assert beside.seen["total"] == 0.5 - 1.0
        beside.take(sample(1, **{"heat.setpoint": 3.0}))
        assert beside.seen["total"] == 0.5 - 1.0 + 1.5 - 3.0


def test_a_clock_that_is_set_back_is_told(tmp_path: Path) -> None:
    """Once, after ten samples in a row; neither is a single one that comes late, nor a file read again."""
    with Shadow(PLAIN_LAW, PLAIN, tmp_path) as beside:
        for row in (0, 1, 2, 1, 3, 4):
            beside.take(sample(row))
        assert (beside.counts.samples, beside.told) == (5, 0)
        for row in range(-100, -60):
            beside.take(sample(row))
        assert [one.text for one in beside.events] == [
            "left out: samples that are 9.5 s older than the latest"
        ]
        beside.take(sample(5))
    with Shadow(PLAIN_LAW, PLAIN, tmp_path) as beside:
        for row in range(-100, 7):
            beside.take(sample(row))
        assert (beside.counts.samples, beside.told) == (7, 0)


def test_differences_count_where_both_actions_are_known(tmp_path: Path) -> None:
    with Shadow(PLAIN_LAW, PLAIN, tmp_path) as beside:
        beside.take(sample(0))
        shown = beside.shown["flame"]
        beside.take(sample(1, flame=math.nan))
        beside.take(sample(2, heat=math.nan))
        assert beside.counts.differences == {"flame": [1, shown - 1.0, (shown - 1.0) ** 2, abs(shown - 1.0)]}
        assert (beside.counts.guarded, beside.counts.outside) == (1, 0)


def test_before_any_valid_sample_the_safe_action_is_shown(tmp_path: Path) -> None:
    with Shadow(LAW, TASK, tmp_path) as beside:
        beside.take(sample(0, heat=math.nan))
        assert beside.shown == {"flame": -1.0}
        assert beside.command() == -1.0


def test_states_are_outside_beyond_the_distance_of_the_region(tmp_path: Path) -> None:
    region: Any = SimpleNamespace(distance=2.0, distances=lambda states: np.abs(states[:, 0]))
    with Shadow(PLAIN_LAW, PLAIN, tmp_path, region=region) as beside:
        for row, heat in enumerate((1.0, 2.0, 2.5, -3.0, math.nan)):
            beside.take(Sample(row / 10, {"heat": heat, "flame": 0.0}))
        assert beside.counts.outside == 2
    lines = (tmp_path / "shadow.csv").read_text().splitlines()[1:]
    assert [line[-1] for line in lines] == ["0", "0", "1", "1", "0"]


# The promise.


class Known(Promise):
    """A promise whose errors on held-out data are written down; `asked` are the steps ahead."""

    def __init__(self, errors: Any, states: Any, *, few: Any = None) -> None:
        self.found, self.few, self.asked = np.array(errors, float), few, []  # type: ignore[var-annotated]
        surrogate: Any = SimpleNamespace(task=PLAIN, split=lambda batch: (None, batch))
        super().__init__(surrogate, SimpleNamespace(states=np.array(states, float)))  # type: ignore[arg-type]

    def _errors(self, batch: Batch) -> Floats:  # noqa: ARG002
        self.asked.append(self.ahead)
        return self.found if self.few is None or self.ahead == 1 else np.array(self.few, float)


def test_nineteen_of_twenty_predictions_keep_all_limits() -> None:
    errors = np.abs(np.random.default_rng(0).normal(size=(2_000, 2))) * [1.0, 50.0]
    limits = Known(errors, [[0, 0], [1, 9]]).limits
    assert np.mean((errors <= limits).all(axis=1)) == pytest.approx(0.95, abs=0.001)
    each = (errors > limits).mean(axis=0)
    assert each[0] == pytest.approx(each[1], abs=0.01)  # both are as often the reason
    assert limits[1] == pytest.approx(50 * limits[0], rel=0.1)


def test_a_state_without_errors_has_a_limit_of_rounding() -> None:
    """By the range of each state in the log."""
    errors = np.ones((40, 2)) * [1.0, 0.0]
    assert Known(errors, [[0, -20], [1, 30]]).limits == pytest.approx([1.0, 50e-9])
    assert (Known(0 * errors, [[0, -20], [1, 30]]).limits > 0).all()


def test_where_episodes_are_short_one_step_ahead_is_promised() -> None:
    enough, few = np.ones((20, 1)), np.ones((19, 1))
    promise = Known(enough, [[0], [1]])
    assert (promise.asked, promise.ahead, promise.overlap) == ([10], 10, 10)
    promise = Known(enough, [[0], [1]], few=few)
    assert (promise.asked, promise.ahead, promise.overlap) == ([10, 1], 1, 2)  # two rows of history


def test_a_promise_is_kept_up_to_its_limits() -> None:
    promise = Known(np.ones((20, 1)), [[0], [1]])
    rows: Any = [([0.0], [0.0], [])] * 20
    for factor, kept in ((1.0, True), (0.99, False)):
        promise.limits = np.array([factor])
        assert promise.kept(rows) == [kept] * 19  # the first only gives the others their past


def promised(folder: Path, answers: list[bool]) -> Shadow:
    """A shadow whose promise was kept or not so often."""
    with Shadow(PLAIN_LAW, PLAIN, folder) as beside:
        for time, kept in enumerate(answers):
            beside._judge(float(time), kept)
    return beside


def test_the_plant_has_left_if_more_than_a_quarter_of_the_latest_predictions_are_off(tmp_path: Path) -> None:
    assert not promised(tmp_path, [False] * 19).has_left  # too few to tell
    assert promised(tmp_path, [False] * 20).has_left
    assert not promised(tmp_path, [True] * 60 + [False] * 20).has_left
    beside = promised(tmp_path, [True] * 60 + [False] * 21)
    assert beside.has_left
    assert (beside.counts.checked, beside.counts.kept, beside.counts.left) == (81, 60, 1)
    assert [one.text for one in beside.events] == [
        "the plant leaves the promise: 26 % of the last predictions are off"
    ]
    assert beside.events[0].time == 80.0


def test_it_is_back_with_half_of_that_among_the_latest_hundred(tmp_path: Path) -> None:
    left = [True] * 60 + [False] * 40
    beside = promised(tmp_path, [*left, *[True] * 87])  # 13 of the latest 100 are off
    assert beside.has_left
    assert beside.counts.left == 1
    beside = promised(tmp_path, [*left, *[True] * 88])
    assert not beside.has_left
    assert [one.text for one in beside.events][1:] == ["the plant is back in the promise"]
    assert beside.told == 2


class Counting:
    """A promise that says how many rows it was given."""

    ahead, overlap = 10, 20

    def __init__(self) -> None:
        self.rows: list[int] = []

    def kept(self, rows: list[Any]) -> list[bool]:
        self.rows.append(len(rows))
        return [True] * ((len(rows) - 1 - self.overlap) // self.ahead)


@pytest.mark.parametrize(
    ("samples", "gap", "asked"),
    [
        (220, None, [220]),  # what is left at the end
        (221, None, [221]),
        (230, None, [221]),  # the next block has 21 rows of the last, and is too short
        (231, None, [221, 31]),
        (60, 30, []),
        (62, 31, [31, 31]),
    ],
)
def test_blocks_of_samples_are_compared_and_overlap(
    tmp_path: Path, samples: int, gap: int | None, asked: list[int]
) -> None:
    promise: Any = Counting()
    with Shadow(PLAIN_LAW, PLAIN, tmp_path, promise=promise) as beside:
        for time, values in boiler(samples, 1):
            late = 5.0 if gap is not None and time >= gap / 10 - 1e-9 else 0.0
            beside.take(Sample(time + late, values))
    assert promise.rows == asked
    assert beside.counts.checked == sum((rows - 21) // 10 for rows in asked)
    assert len((tmp_path / "promise.csv").read_text().splitlines()) == 1 + beside.counts.checked


def test_each_prediction_has_its_own_time_and_waits_for_seconds_only(tmp_path: Path) -> None:
    """Of a plant with a sample each minute, the first prediction is judged when it can be."""
    promise: Any = Counting()
    task = PLAIN.model_copy(update={"dt": 60.0})
    with Shadow(PLAIN_LAW, task, tmp_path, promise=promise) as beside:
        for row, (_, values) in enumerate(boiler(51, 1)):
            beside.take(Sample(60.0 * row, values))
        assert promise.rows == [31, 31, 31]
        times = [line.split(",")[0] for line in (tmp_path / "promise.csv").read_text().splitlines()[1:]]
        assert [float(time) for time in times] == [60 * 30, 60 * 40, 60 * 50]


def test_a_sample_without_a_number_ends_a_block(tmp_path: Path) -> None:
    promise: Any = Counting()
    with Shadow(PLAIN_LAW, PLAIN, tmp_path, promise=promise) as beside:
        for row, (time, values) in enumerate(boiler(70, 1)):
            beside.take(Sample(time, values | ({"flame": math.nan} if row == 32 else {})))
    assert promise.rows == [32, 37]


# Files.


@pytest.mark.parametrize("lost", [1, 5])
def test_a_row_that_is_half_written_is_removed(tmp_path: Path, lost: int) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"a,b\n1,2\n3,45678\n"[:-lost])
    assert list(shadow._rows_of(file, ["a", "b"])) == [{"a": "1", "b": "2"}]
    assert file.read_bytes() == b"a,b\n1,2\n"
    assert list(shadow._rows_of(file, ["a", "b"])) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize("text", ["a,b\n1\n", "a,b\n1,2,3\n", "b,a\n1,2\n", "a,b\nx,2\n", "a,b\n1,x\n"])
def test_a_table_that_is_damaged_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ClearloopError, match=r"t\.csv: damaged: row 1; choose another --out"):
        list(shadow._rows_of(tmp_path / "t.csv", ["a", "b"]))


@pytest.mark.parametrize(
    "row", [b"nan,1,0", b"inf,1,0", b"2,1,2", b"2,1,", b"2,\xff,0", b"2,\0,0", b'2,"1,0']
)
def test_damaged_cells_of_the_samples_are_one_line(tmp_path: Path, row: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(b"time,u,gap\n1,,0\n" + row + b"\n")
    with pytest.raises(ClearloopError, match=r"t\.csv: damaged: row [12]; choose another --out"):
        list(shadow._rows_of(tmp_path / "t.csv", ["time", "u", "gap"]))


@pytest.mark.skipif("sys.platform == 'win32'", reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["shadow.csv", "promise.csv"])
def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path, name: str) -> None:
    with Shadow(LAW, TASK, tmp_path):
        pass
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ClearloopError, match=rf"{name}: a device or a pipe may never end"):
        Shadow(LAW, TASK, tmp_path)


@pytest.mark.parametrize("value", [1e200, -math.inf])
def test_an_applied_action_beyond_all_actuators_is_missing(tmp_path: Path, value: float) -> None:
    """Its square would be infinite, which JSON has no number for; nor has it one after a restart."""
    for times in ((0.0, 0.1), (0.2,)):
        with Shadow(LAW, TASK, tmp_path) as beside:
            for time in times:
                beside.take(Sample(time, {"heat": 0.5, "flame": value if time else 1.0}))
        assert beside.counts.differences["flame"][0] == 1
        assert all(map(math.isfinite, beside.counts.differences["flame"]))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(math.nan, "never"), (5.0, "5 s"), (1.7e9, "2023-11-14 22:13:20 UTC"), (1.7e12, "1.7e+12 s"),
     (1e300, "1e+300 s"), (-1e300, "-1e+300 s"), (math.inf, "inf s")],
)  # fmt: skip
def test_any_time_can_be_shown(seconds: float, shown: str) -> None:
    """A clock that counts milliseconds since 1970 is in no year that a date has."""
    assert clock_time(seconds) == shown
