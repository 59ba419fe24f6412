import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.figures.model import draw_quality
from clearloop.surrogate import Quality, Surrogate, assess
from clearloop.surrogate.fitting import KnownReward
from clearloop.surrogate.quality import Disagreement, OpenLoop, RewardErrors, StateErrors, grade_model
from clearloop.task import Task

from .models import PUSHED, SLIDER, linear_network, slider_log, slider_model, tank_log


def exact(gains: Floats) -> tuple[Floats, float]:
    return gains, 0.0


def test_a_perfect_model() -> None:
    quality = assess(slider_model(exact, exact), slider_log())
    assert quality.steps == 720
    assert quality.states.rmse == pytest.approx([0, 0], abs=1e-14)
    assert quality.states.r_squared == pytest.approx([1, 1])
    assert np.isnan(quality.states.failing).all()
    assert quality.open_loop.median.shape == (15, 2)
    assert quality.open_loop.ninety.max() < 1e-12
    assert quality.reward.score == 1.0
    assert quality.reward.found is None
    assert quality.reward.false_alarms == 0.0
    assert quality.disagreement is not None
    assert quality.disagreement.inside.max() == quality.disagreement.outside.max() == 0.0
    assert quality.verdict == "good"


def test_a_model_that_predicts_nothing() -> None:
    quality = assess(slider_model(lambda gains: (0 * gains, 0.0)), slider_log())
    changes = slider_log().transitions().next - slider_log().transitions().window[:, :2]
    assert quality.states.rmse == pytest.approx(np.sqrt(np.mean(changes**2, axis=0)))
    assert quality.states.r_squared == pytest.approx(1 - np.mean(changes**2, axis=0) / changes.var(axis=0))
    assert quality.verdict == "poor"
    assert quality.disagreement is None
    assert quality.reasons[0].startswith("one step ahead, 0 % of the change of")


def test_a_constant_error_adds_up_over_the_horizon() -> None:
    bias = 0.001
    quality = assess(slider_model(lambda gains: (gains, bias if gains[2] == 0 else 0.0)), slider_log())
    assert quality.open_loop.median[:, 0] == pytest.approx(bias * np.arange(1, 16))
    assert quality.open_loop.ninety[:, 0] == pytest.approx(bias * np.arange(1, 16))
    assert quality.open_loop.median[:, 1] == pytest.approx(np.zeros(15), abs=1e-12)
    assert quality.open_loop.replays.tolist() == 9 * [60] + 6 * [
        30
    ]  # 24 steps are a replay of 15 and one of 9
    assert quality.states.rmse == pytest.approx([bias, 0], abs=1e-12)


def test_disagreement_is_the_deviation_between_members() -> None:
    model = slider_model(exact, lambda gains: (1.1 * gains, 0.0))
    quality = assess(model, slider_log())
    assert quality.disagreement is not None
    window = slider_log().transitions().window
    further = 1.5 * window * [1, 1, 0] + window * [0, 0, 1]
    further = further[(np.abs(further) > model.region[:, 1]).any(axis=1)]
    assert 0 < len(further) < len(window)
    for found, points in ((quality.disagreement.inside, window), (quality.disagreement.outside, further)):
        apart = 0.1 * points @ PUSHED.T / np.sqrt(2)
        assert found == pytest.approx(np.sqrt(np.mean(apart**2, axis=0)))


def test_failures_found_and_false_alarms_raised() -> None:
    """Places up to ±5.5 are logged, those beyond ±5 have failed; the model is 0.25 m too far right."""
    log = slider_log(reach=5.4)
    after = log.transitions().next[:, 0]
    failed = np.abs(after) > 5
    assert 10 < failed.sum() < 300
    found = (np.abs(after + 0.25) > 5)[failed].mean()
    alarms = (np.abs(after + 0.25) > 5)[~failed].mean()
    quality = assess(slider_model(lambda gains: (gains, 0.25 if gains[2] == 0 else 0.0)), log)
    assert (quality.reward.found, quality.reward.false_alarms) == pytest.approx((found, alarms))
    assert quality.reward.levels.tolist() == [0.0, -1.0]
    confusion = quality.reward.confusion
    assert confusion.sum() == 720
    assert confusion[1, 1] / confusion[1].sum() == pytest.approx(found)
    assert quality.reward.score == pytest.approx(np.trace(confusion) / 720)


def test_replays_remember_the_past() -> None:
    """A place that goes on as it went in the step before, and answers the push before this one."""
    task = Task.from_dict(
        SLIDER.model_dump(mode="json", exclude={"states", "reward"})
        | {"history": 2, "states": {"place": {}}, "reward": {"expression": "-abs(place)"}}
    )
    gains = np.array([0.9, 0.0, -0.9, 0.2])  # of place, push, place[t-1], push[t-1]
    rng = np.random.default_rng(3)
    pushes, places = rng.uniform(-1, 1, 61), rng.uniform(-1, 1, 1).repeat(62)
    for row in range(1, 61):  # before the first row stands its place, which the last cell keeps, and no push
        places[row] = places[row - 1] + gains @ [
            places[row - 1],
            0,
            places[row - 2],
            pushes[row - 2] * (row > 1),
        ]
    batch = Batch(task.columns, places[:61, None], pushes[:, None], np.zeros(61, int), np.zeros(61, np.bool_))
    model = replace(
        slider_model(exact),
        task=task,
        dynamics=((linear_network(gains),),),
        reward=KnownReward(task),
        region=np.tile([-9.0, 9.0], (4, 1)),
    )
    quality = assess(model, batch)
    assert len(quality.open_loop.median) == 15
    assert quality.open_loop.ninety.max() < 1e-12


def graded(
    *, r_squared: float = 1.0, soon: float = 0.0, end: float = 0.0, **reward: float
) -> tuple[str, tuple[str, ...]]:
    """The verdict on a model of the slider that is perfect but for the numbers that are given."""
    errors = np.zeros((15, 2))
    errors[9, 1], errors[14, 1] = soon, end
    return grade_model(
        SLIDER,
        StateErrors(np.zeros(2), np.array([1.0, r_squared]), np.zeros(2)),
        OpenLoop(errors, errors, np.full(15, 10), np.ones(2)),
        RewardErrors(np.zeros(2), np.eye(2), **{"score": 1.0, "found": 1.0, "false_alarms": 0.0} | reward),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("good", "fair", "poor", "reason"),
    [
        ({"found": 0.905}, {"found": 0.895}, {"found": 0.695}, "of the failures are predicted"),
        ({"found": 0.905}, {"found": 0.705}, {"found": 0.695}, "of the failures are predicted"),
        ({"false_alarms": 0.0095}, {"false_alarms": 0.0105}, {"false_alarms": 0.0505}, "predicted to fail"),
        ({"false_alarms": 0.0095}, {"false_alarms": 0.0495}, {"false_alarms": 0.0505}, "predicted to fail"),
        ({"score": 0.975}, {"score": 0.965}, {"score": 0.895}, "of the rewards are predicted"),
        ({"score": 0.975}, {"score": 0.905}, {"score": 0.895}, "of the rewards are predicted"),
        ({"r_squared": 0.995}, {"r_squared": 0.985}, {"r_squared": 0.895}, "one step ahead"),
        ({"r_squared": 0.995}, {"r_squared": 0.905}, {"r_squared": 0.895}, "one step ahead"),
        ({"soon": 0.095}, {"soon": 0.105}, {"soon": 0.505}, "10 steps ahead"),
        ({"soon": 0.095}, {"soon": 0.495}, {"soon": 0.505}, "10 steps ahead"),
    ],
)
def test_every_criterion_has_its_limits(
    good: dict[str, float], fair: dict[str, float], poor: dict[str, float], reason: str
) -> None:
    assert graded(**good)[0] == "good"
    for numbers, verdict in ((fair, "fair"), (poor, "poor")):
        grade, (said,) = graded(**numbers)
        assert grade == verdict
        assert reason in said


def test_a_replay_that_runs_off_at_the_end_is_only_fair() -> None:
    assert graded(end=0.495)[0] == "good"
    assert graded(end=0.505) == (
        "fair",
        ("15 steps ahead, the typical error of speed is 0.51 m/s, 0.51 of its spread",),
    )
    assert graded(end=1e6)[0] == "fair"


def test_disagreement_is_an_unbiased_deviation() -> None:
    """Two members that differ by a constant d deviate by d / √2."""
    quality = assess(slider_model(exact, lambda gains: (gains, 0.02)), slider_log())
    assert quality.disagreement is not None
    assert quality.disagreement.inside == pytest.approx(np.full(2, 0.02 / np.sqrt(2)))


def test_replays_end_before_a_failure() -> None:
    quality = assess(slider_model(exact), slider_log(reach=5.4))
    assert quality.open_loop.replays[0] < 60
    assert quality.open_loop.ninety.max() < 1e-12


def test_of_every_kind_of_surrogate(surrogate: Surrogate, cartpole_batch: Batch) -> None:
    batch = tank_log() if surrogate.task.name == "tank" else cartpole_batch
    quality = assess(surrogate, surrogate.split(batch)[1])
    table = json.loads(json.dumps(quality.to_dict(), allow_nan=False))
    assert set(table["one_step"]["rmse"]) == set(surrogate.task.states)
    assert len(table["open_loop"]["replays"]) == len(next(iter(table["open_loop"]["median"].values())))
    assert (table["disagreement"] is None) == (surrogate.members == 1)
    assert quality.verdict in repr(quality)


def test_a_log_of_failures_only_is_refused() -> None:
    batch = slider_log(episodes=3, rows=2)
    with pytest.raises(ClearloopError, match="all held-out steps fail"):
        assess(slider_model(exact), replace(batch, states=batch.states + 100))


@pytest.fixture(scope="module")
def pictured() -> Quality:
    return assess(slider_model(exact, lambda gains: (1.1 * gains, 0.02)), slider_log(reach=5.4))


def test_figure_says_what_it_shows(pictured: Quality, tmp_path: Path) -> None:
    figure = draw_quality(pictured)
    figure.savefig(tmp_path / "quality.svg")
    figure.savefig(tmp_path / "quality.png")
    said = (tmp_path / "quality.svg").read_text()
    for words in ("Model of slider: poor", "error (m/s)", "steps ahead", "predicted", "outside"):
        assert re.search(rf"<!-- [^\n]*{re.escape(words)}", said), words
    assert (tmp_path / "quality.png").stat().st_size > 10_000


def test_figure_of_one_member_and_of_a_value(
    published: Surrogate, tank: Surrogate, cartpole_batch: Batch
) -> None:
    for surrogate, batch, words in (
        (published, cartpole_batch, "a single member"),
        (tank, tank_log(), "% of the reward's"),
    ):
        figure = draw_quality(assess(surrogate, surrogate.split(batch)[1]))
        texts = [text.get_text() for part in figure.subfigs for axes in part.axes for text in axes.texts]
        assert any(words in text for text in texts)


def test_figure_of_what_cannot_be_told(pictured: Quality, tmp_path: Path) -> None:
    """No replay lasts a step, and nothing in the log ever changes."""
    nothing = OpenLoop(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, np.int64), np.zeros(2))
    unknown = replace(pictured.states, r_squared=np.full(2, np.nan))
    draw_quality(replace(pictured, states=unknown, open_loop=nothing)).savefig(tmp_path / "empty.png")


def test_a_log_whose_episodes_fail_at_once() -> None:
    log = slider_log(episodes=2, rows=3)
    places = np.array([0.0, 100.0, 0.0, 0.0, 100.0, 0.0])
    quality = assess(slider_model(exact), replace(log, states=np.column_stack([places, log.states[:, 1]])))
    assert len(quality.open_loop.median) == 0
    assert quality.to_dict()["open_loop"]["median"] == {"place": [], "speed": []}


def test_figure_shows_the_worst_of_many_states() -> None:
    task = Task.from_dict(
        SLIDER.model_dump(mode="json", exclude={"states", "reward"})
        | {"states": {f"x{j}": {} for j in range(20)}, "reward": {"expression": "x0"}}
    )
    errors = np.arange(20.0)  # the last states are the worst
    quality = Quality(
        task=task,
        steps=100,
        verdict="poor",
        reasons=("one reason; " * 20,),
        states=StateErrors(errors, 1 - errors, errors),
        open_loop=OpenLoop(errors[None], 2 * errors[None], np.array([10]), np.ones(20)),
        reward=RewardErrors(np.zeros(0), np.zeros((0, 0), np.int64), 0.5, None, None),
        disagreement=Disagreement(errors, 2 * errors),
    )
    upper, lower = draw_quality(quality).subfigs
    assert [axes.get_title() for axes in upper.axes] == ["x16", "x17", "x18", "x19"]
    listed = [text.get_text() for text in lower.axes[0].get_yticklabels()]
    assert listed == [f"x{j}" for j in range(19, 7, -1)]
