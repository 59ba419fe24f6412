"""New numbers for a PID from a log: the plant is known here, so that they can be tested on it."""

import math
from pathlib import Path

import control
import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from clearloop.controllers import PID, Linear
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.figures.trajectories import draw_tuning
from clearloop.methods import tuning
from clearloop.methods.pid_rules import Bench, Gains, Process, Shape, find_shape, find_ultimate, rules
from clearloop.methods.pid_search import Limits, search
from clearloop.methods.tuning import Plant, Tuning, _present, tune
from clearloop.task import Task

DT, DELAY = 0.25, 4

TEXT = """
name = "oven"
dt = 0.25
discount = 0.99
horizon = 100
[states]
y = { unit = "degC", setpoint = "goal" }
[actions]
u = { unit = "%", limits = [-50.0, 50.0] }
[reward]
expression = "-abs(y.error)"
[starts]
y = [-1.0, 1.0]
"""
POLE = math.exp(-DT / 4)
TRUTH = Process(np.array([1.0, -POLE]), np.append(np.zeros(DELAY + 1), 2 * (1 - POLE)))
"""2 exp(-s)/(4 s + 1), sampled"""


def make_log(kp: float, ti: float, *, rows: int = 1200, noise: float = 0.01) -> pl.DataFrame:
    """A log under a PI, with steps of the setpoint."""
    rng = np.random.default_rng(3)
    goal = np.repeat(rng.choice([-1.0, 0.0, 1.0, 2.0], rows // 100), 100)
    y, total, sent, table = 0.0, 0.0, [0.0] * (DELAY + 1), []
    for k in range(rows):
        seen = y + noise * rng.normal()
        total += kp * DT / ti * (goal[k] - seen)
        u = kp * (goal[k] - seen) + total
        sent.append(u)
        table.append((seen, u, float(goal[k])))
        y = POLE * y + 2 * (1 - POLE) * sent[-1 - DELAY]
    return pl.DataFrame(table, schema=["y", "u", "goal"], orient="row")


def test_an_empty_integral_begins_at_the_mean_action_of_the_log() -> None:
    log, task = make_log(0.4, 6.0), Task.from_toml(TEXT)
    moved = log.with_columns(pl.col("u") + 30.0)
    for frame, usual in ((log, 0.0), (moved, 30.0)):
        found = tune(task, Batch.from_frame(frame, task))
        (output,) = found.controller.outputs.values()  # type: ignore[attr-defined]
        assert output.bias == pytest.approx(usual, abs=0.5)
        assert "within 1 %" in found.words or "within 2 %" in found.words


def test_the_figure_has_plain_numbers_at_its_ticks() -> None:
    task = Task.from_toml(TEXT)
    figure = draw_tuning(tune(task, Batch.from_frame(make_log(0.4, 6.0), task)))
    figure.canvas.draw()
    labels = [tick.get_text() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
              for tick in axis.get_ticklabels()]  # fmt: skip
    assert "0.1" in labels
    assert not any("$" in text for text in labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tune")
    (place / "oven.toml").write_text(TEXT)
    make_log(0.4, 6.0).write_csv(place / "log.csv")
    return place


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Tuning:
    task = Task.load(folder / "oven.toml")
    return tune(task, Batch.load(folder / "log.csv", task), limits=Limits(ms=1.6), structure="PI")


def test_the_present_numbers_are_those_that_made_the_log(tuned: Tuning) -> None:
    present = tuned.rows[0]
    assert present.name == "present"
    assert present.gains.kp == pytest.approx(0.4, rel=0.02)
    assert present.gains.ti == pytest.approx(6.0, rel=0.02)


def test_the_plant_is_the_one_that_was_logged(tuned: Tuning) -> None:
    assert tuned.shape is not None
    assert tuned.shape.gain == pytest.approx(2.0, rel=0.03)
    assert tuned.shape.lag == pytest.approx(4.0, rel=0.1)
    assert tuned.shape.delay == pytest.approx(1.0 + DT / 2, abs=0.2)
    assert tuned.supported


def test_the_proposal_is_near_the_best_on_the_true_plant_and_keeps_its_margin(tuned: Tuning) -> None:
    truth = Bench(TRUTH, DT, 400)
    best = search([truth], [Gains(0.5, 4.0)], Limits(ms=1.6), "PI", None)
    assert best is not None
    picked = tuned.rows[tuned.picked]
    assert picked.name == "search PI"
    assert truth.sensitivity(picked.gains) < 1.75
    assert truth.load(picked.gains) < 1.1 * truth.load(best)
    assert truth.load(picked.gains) < truth.load(tuned.rows[0].gains)


def test_the_controller_has_the_proposed_numbers(tuned: Tuning) -> None:
    assert isinstance(tuned.controller, PID)
    (loop,) = tuned.controller.outputs["u"].loops
    assert loop.integral
    assert Gains.of(loop, 1.0, DT) == pytest.approx(tuned.rows[tuned.picked].gains, rel=1e-3)


def test_what_may_not_change_stays(folder: Path) -> None:
    task = Task.load(folder / "oven.toml")
    batch = Batch.load(folder / "log.csv", task)
    held = tune(task, batch, limits=Limits(only=("kp",), most_change=1.2))
    now, new = held.rows[0].gains, held.rows[held.picked].gains
    assert new.ti == pytest.approx(now.ti)
    assert new.kp == pytest.approx(1.2 * now.kp, rel=1e-3)  # more would be better, and is not allowed


def test_the_assessment_is_that_of_python_control() -> None:
    gains = Gains(0.9, 3.0, 0.4, 0.1)
    found = Bench(TRUTH, DT, 800).assess(gains)
    z = control.tf([1, 0], [1], DT)
    plant = control.tf([2 * (1 - POLE)], [1, -POLE], DT) * z**-DELAY
    a = gains.tf / (gains.tf + DT)
    law = gains.kp * (1 + DT / gains.ti * z / (z - 1) + gains.td / DT * (1 - a) * (z - 1) / (z - a))
    w = np.geomspace(1e-3, 1, 5000) * math.pi / DT
    gain, phase, *_ = control.stability_margins(control.FRD(law * plant, w, smooth=True))
    assert found.gain_margin == pytest.approx(gain, rel=0.02)
    assert found.phase_margin == pytest.approx(phase, abs=1.0)
    loop = (law * plant)(np.exp(1j * w * DT))
    assert found.ms == pytest.approx(np.max(1 / np.abs(1 + loop)), rel=1e-2)


def test_rules_give_the_numbers_of_their_books() -> None:
    bench = Bench(TRUTH, DT, 400)
    found = dict(rules(Shape(2.0, 4.0, 1.0), bench, None))
    assert found["SIMC PI"] == pytest.approx(Gains(1.0, 4.0))
    assert found["lambda PI"] == pytest.approx(Gains(0.4, 4.0))
    assert found["AMIGO PID"][:3] == pytest.approx((1.0, (0.4 + 3.2) / 1.4, 2.0 / 4.3))
    assert found["AMIGO PI"].kp == pytest.approx((0.15 + (0.35 - 4 / 25) * 4) / 2)
    ultimate = find_ultimate(bench)
    assert ultimate is not None
    assert not Bench(TRUTH, DT, 400).assess(Gains(1.03 * ultimate[0], 0.0)).stable
    assert Bench(TRUTH, DT, 400).assess(Gains(0.97 * ultimate[0], 0.0)).stable


def test_a_plant_that_does_not_answer_has_no_shape() -> None:
    assert find_shape(Process(np.array([1.0, -0.9]), np.zeros(3)), DT) is None


def test_a_plant_that_integrates_has_a_slope_and_a_dead_time() -> None:
    shape = find_shape(Process(np.array([1.0, -1.0]), np.array([0, 0, 0, 0, 0.5 * DT])), DT)
    assert shape is not None
    assert shape.integrates
    assert shape.gain == pytest.approx(0.5)
    assert shape.delay == pytest.approx(3 * DT, abs=DT)


def test_another_kind_of_controller_is_refused(folder: Path) -> None:
    task = Task.load(folder / "oven.toml")
    batch = Batch.load(folder / "log.csv", task)
    with pytest.raises(ClearloopError, match="expected a controller of kind 'pid', not of kind 'linear'"):
        tune(task, batch, Linear(gains={"u": {"y": -1.0}}))


def test_the_figure_shows_the_proposal_and_the_present_loop(tuned: Tuning) -> None:
    figure = draw_tuning(tuned)
    labels = [text.get_text() for text in figure.legends[0].get_texts()] if figure.legends else []
    assert {"present", "search PI"} <= set(labels)


def test_a_computed_sum_in_the_task_is_the_integral_of_the_present_pid(folder: Path) -> None:
    """As `init` drafts it; without it the law would have two loops."""
    summed = TEXT.replace(
        "[actions]", 'y_sum = { formula = "clip(y_sum[t-1] + dt*y.error, -9, 9)" }\n[actions]'
    )
    task = Task.from_toml(summed)
    batch = Batch.load(folder / "log.csv", task)
    verdict, present = _present(task, batch, None)
    assert "A PI law explains" in verdict
    assert present is not None
    assert (present.action, present.state) == ("u", "y")
    assert present.gains[:2] == pytest.approx((0.4, 6.0), rel=0.02)


def test_loops_that_hold_the_plant_together_are_not_tuned_one_by_one() -> None:
    """The published PD-like law of two states: new numbers for one would leave out the other."""
    task = Task.from_toml(TEXT.replace("[actions]", "z = {}\n[actions]"))
    rng = np.random.default_rng(0)
    y, z = lfilter([1.0], [1.0, -0.95], rng.normal(size=(2, 900)))
    u = -0.8 * y - 0.3 * np.diff(y, prepend=y[0]) - 0.5 * z - 0.7 * np.diff(z, prepend=z[0])
    log = Batch.from_frame(pl.DataFrame({"y": y, "z": z, "u": u, "goal": np.zeros(900)}), task)
    with pytest.raises(ClearloopError, match="It has loops on y and z, which hold the plant together"):
        tune(task, log)


def test_what_the_log_does_not_tell_is_not_tried(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another look at the log shows another plant at all frequencies, the present numbers stay."""
    task = Task.load(folder / "oven.toml")
    batch = Batch.load(folder / "log.csv", task)
    rival = Process(TRUTH.a, 1.5 * TRUTH.b)
    seen = Plant(TRUTH, (TRUTH,), (rival,))
    monkeypatch.setattr(tuning, "_plant", lambda *_: seen)
    kept = tune(task, batch)
    assert kept.rows[kept.picked].name == "present"
    assert not kept.supported
    assert kept.refused is not None
    assert kept.refused.doubt == pytest.approx(0.5)
    assert "Keep what is there" in kept.words
    assert isinstance(kept.controller, PID)
    assert kept.controller.outputs["u"].loops[0].kp == pytest.approx(0.4, rel=0.02)


def test_a_loop_crosses_over_where_the_plant_is_known() -> None:
    bench = Bench(TRUTH, DT, 400)
    free = search([bench], [Gains(0.5, 4.0)], Limits(), "PI", None)
    assert free is not None
    most = 0.6 * bench.assess(free).crossover
    doubts = np.where(np.angle(bench.z) / DT > most, 1.0, 0.0)
    bound = search([bench], [Gains(0.5, 4.0)], Limits(), "PI", None, doubts)
    assert bound is not None
    assert 0.9 * most < bench.assess(bound).crossover < 1.2 * most  # between two frequencies
