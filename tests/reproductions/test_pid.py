"""The test batch of Åström and Hägglund: its processes, and two of them from the log to the verdict."""

from pathlib import Path

import numpy as np
import pytest
from reproductions.pid_batch import STEPS, make_case, whole_batch
from scipy.signal import lfilter, step

from reproductions import pid

WHOLE = list(whole_batch())


def test_the_batch_has_all_its_families() -> None:
    assert len(WHOLE) == 134
    assert len({plant.name for plant in WHOLE}) == 134
    assert sum(plant.integrates for plant in WHOLE) == 10


@pytest.mark.parametrize("number", [25, 43, 60, 74, 100, 120, 130])
def test_a_process_is_sampled_exactly(number: int) -> None:
    plant, case = WHOLE[number], make_case(number)
    times = np.arange(200) * case.dt
    found = lfilter(case.bench.process.b, case.bench.process.a, np.ones(200))
    late = times[times >= plant.delay] - plant.delay
    grid = np.append(0.0, late[late > 0])
    _, true = step((plant.numerator, plant.denominator), T=np.linspace(0, grid[-1], 20_001))
    expected = np.interp(late, np.linspace(0, grid[-1], 20_001), true)
    assert np.abs(found[times >= plant.delay] - expected).max() < 1e-5
    assert not found[times < plant.delay].any()


def test_a_log_is_as_long_and_as_noisy_as_it_should_be() -> None:
    case = make_case(60)
    assert len(case.log.states) == pytest.approx(50 * case.plant.rise / case.dt, abs=1)
    goal = case.log.setpoints
    assert goal is not None
    assert np.count_nonzero(np.diff(goal[:, 0])) == STEPS - 1 >= 6
    assert case.bench.sensitivity(case.law) == pytest.approx(1.2, abs=0.02)


def test_two_processes_are_tuned_nearly_as_well_as_possible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pid.main(["--processes", "2", "--folder", str(tmp_path)]) == 0
    first = capsys.readouterr().out
    assert "2 processes" in first
    assert (tmp_path / "pid.svg").exists()
    results = [pid.load(file) for file in sorted(tmp_path.glob("*.json"))]
    for result in results:
        assert pid.ratio(result, "best") == 1
        assert 0.9 < pid.ratio(result, "tune") < 1.25
        assert result["rows"]["tune"]["ms"] < pid.MOST_MS
        assert pid.ratio(result, "SIMC PI") > 1
    pid.main(["--processes", "2", "--folder", str(tmp_path)])  # again, from what is kept
    assert capsys.readouterr().out == first
