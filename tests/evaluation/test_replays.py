"""Models repeat the log in closed loop, or they neither search nor judge."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import Controller, from_json
from clearloop.data import Batch
from clearloop.evaluation.promise import LEAST, SPREAD, promise_interval
from clearloop.evaluation.replays import Replays, replay_log
from clearloop.figures.model import draw_replays
from clearloop.methods.learning import repeat_log
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.trust import examine_model
from clearloop.task import Task
from tests.surrogate.models import BRIEF

# A plant of first order under PI, with a small random signal: x' = 0.9 x + 0.2 u + 0.5, which rests elsewhere
# than at the setpoint.
TASK = Task.from_toml("""
name = "oven"
dt = 1.0
discount = 0.97
horizon = 40
[states]
heat = { unit = "K", setpoint = "wanted" }
owed = { formula = "owed[t-1] + heat.error" }
[actions]
power = { limits = [0, 20] }
[reward]
expression = "-abs(heat.error)"
""")
LAW: Controller = from_json(
    '{"clearloop": 1, "kind": "equation", "outputs": {"power": "8 - 1.5*heat - 0.1*owed"}}'
)


def log_of(gain: float = 0.2, rows: int = 1200) -> Batch:
    rng = np.random.default_rng(0)
    wanted = np.repeat(rng.uniform(15, 25, rows // 60), 60)
    heat, owed, power = np.empty(rows), np.empty(rows), np.empty(rows)
    heat[0], owed[0] = 18.0, 18.0 - wanted[0]
    for k in range(rows):
        if k:
            heat[k] = 0.9 * heat[k - 1] + gain * power[k - 1] + 0.5
            owed[k] = owed[k - 1] + heat[k] - wanted[k]
        asked = 8 - 1.5 * (heat[k] - wanted[k]) - 0.1 * owed[k]
        power[k] = np.clip(asked + rng.uniform(-2, 2), 0, 20)
    frame = {"heat": heat, "owed": owed, "power": power, "wanted": wanted}
    import polars as pl

    return Batch.from_frame(pl.DataFrame(frame), TASK)


BATCH = log_of()
MODEL = Surrogate.fit(
    TASK, BATCH, track=replace(BEST, search=2, judge=2, training=BRIEF), rng=np.random.default_rng(0)
)


def worse(model: Surrogate, member: int, factor: float) -> Surrogate:
    """The model with a member whose actions act differently."""
    (network,) = model.dynamics[member]
    assert network.linear is not None
    changed = replace(network, linear=network.linear * [[1.0, 1.0, factor]])
    members = [*model.dynamics]
    members[member] = (changed,)
    return replace(model, dynamics=tuple(members))


def test_a_true_model_repeats_the_course_and_the_cost() -> None:
    replays = replay_log(TASK, BATCH, MODEL, LAW)
    assert replays is not None
    np.testing.assert_allclose(
        replays.states[..., 0], np.broadcast_to(replays.logged, replays.states.shape)[..., 0], atol=1e-3
    )
    np.testing.assert_allclose(replays.bias, 0.0, atol=1e-3)
    assert replays.repeats.all()


def test_the_law_answers_where_a_model_leaves_the_log() -> None:
    weak = worse(MODEL, 0, 0.8)
    closed, opened = replay_log(TASK, BATCH, weak, LAW), replay_log(TASK, BATCH, weak)
    assert closed is not None
    assert opened is not None
    far = [np.abs(one.states[0, ..., 0] - one.logged[..., 0]).mean() for one in (closed, opened)]
    assert far[0] < 0.5 * far[1]  # feedback brings it back
    assert abs(closed.bias[0]) > 10 * abs(closed.bias[1])


def test_a_member_that_runs_off_neither_searches_nor_judges() -> None:
    wrong = worse(worse(MODEL, 1, -3.0), 3, -3.0)
    kept, replays = repeat_log(TASK, BATCH, wrong)
    assert replays is not None
    assert replays.repeats.tolist() == [True, False, True, False]
    assert (kept.search_members, kept.judge_members) == ((0,), (2,))
    assert kept.repetition is not None
    assert "2 of 4 models repeat the log in closed loop" in kept.repetition.words


def test_too_few_members_are_a_reason_to_refuse() -> None:
    wrong = MODEL
    for member in (0, 1, 2):
        wrong = worse(wrong, member, -3.0)
    replays = replay_log(TASK, BATCH, wrong, LAW)
    assert replays is not None
    told = replace(wrong, repetition=replays.summary)
    assert replays.repeats.tolist() == [False, False, False, True]
    codes = {finding.code: finding.severity for finding in examine_model(TASK, BATCH, told)}
    assert codes["does-not-repeat"] == "problem"


def test_a_repetition_is_kept_in_the_file(tmp_path: object) -> None:
    kept, _ = repeat_log(TASK, BATCH, MODEL)
    kept.save(f"{tmp_path}/model")
    assert Surrogate.load(f"{tmp_path}/model", TASK).repetition == kept.repetition is not None


def test_a_short_log_is_not_replayed() -> None:
    few = BATCH.to_frame().head(3)
    assert replay_log(TASK, Batch.from_frame(few, TASK), MODEL) is None


@pytest.mark.parametrize("bias", [-0.3, 0.0, 0.3])
def test_the_truth_is_expected_where_replays_say(bias: float) -> None:
    kept, _ = repeat_log(TASK, BATCH, MODEL)
    assert kept.repetition is not None
    told = replace(
        kept, repetition=kept.repetition.model_copy(update={"bias": (bias,) * 4, "bias_se": (0.0,) * 4})
    )
    low, high = promise_interval(np.full((2, 8), 10.0), told)
    assert low <= 10 * (1 - LEAST) + 1e-9
    assert high >= 10 * (1 + LEAST) - 1e-9
    assert (10 - low > high - 10 + 0.1) == (bias > 0)
    assert (high - 10 > 10 - low + 0.1) == (bias < 0)


def test_judges_that_differ_widen_the_interval() -> None:
    narrow = promise_interval(np.full((2, 8), 10.0), MODEL)
    wide = promise_interval(np.array([[9.0] * 8, [11.0] * 8]), MODEL)
    assert wide.low < narrow.low < 10 < narrow.high < wide.high
    half = np.sqrt(SPREAD**2 * 2 + (10 * LEAST) ** 2)  # of 9 and 11 the variance is 2
    assert wide == pytest.approx((10 - half, 10 + half))


def test_the_figure_shows_log_and_models() -> None:
    replays: Replays | None = replay_log(TASK, BATCH, worse(MODEL, 3, -3.0), LAW)
    assert replays is not None
    figure = draw_replays(replays)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["log", "model", "model that does not repeat the log", "setpoint"]
