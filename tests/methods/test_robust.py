"""What a search asks for besides a low penalty: disturbed starts, margins, and a pick that has them."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import Controller, Equation, encode
from clearloop.errors import ClearloopError
from clearloop.evaluation.stability import LoopMargins
from clearloop.methods.learning import judge
from clearloop.methods.method import Candidate
from clearloop.methods.robust import Demands, disturbances, half_disturbed, keeps, shortfall
from clearloop.plants.scenarios import Scenarios
from clearloop.runs.front import Front
from clearloop.surrogate import BEST, Surrogate
from clearloop.task import Task
from clearloop.task.tables import Robust
from tests.controllers.kinds import KINDS
from tests.methods.linear_plants import make_task
from tests.surrogate.models import BRIEF, SLIDER, slider_log

SYMMETRIC = SLIDER.model_copy(update={"setpoint": {}})


@pytest.fixture(scope="module")
def model() -> Surrogate:
    track = replace(BEST, search=2, judge=2, training=BRIEF)
    return Surrogate.fit(SLIDER, slider_log(), track=track, rng=np.random.default_rng(0))


def law(text: str) -> Equation:
    return Equation(outputs={"push": text})


WEAK, GOOD = law("-0.5*place - 1.5*speed"), law("-0.05*place - 0.4*speed")


def test_half_of_the_starts_are_disturbed_one_of_every_pair() -> None:
    spread = np.array([1.0, 2.0])
    calm = Scenarios.at(SLIDER, np.zeros((400, 2)))
    upset = half_disturbed(calm, SLIDER, spread, seed=1).disturbances
    late = upset.late.reshape(-1, 2)
    assert (late.sum(axis=1) == 1).all()
    assert 0.3 < late[:, 0].mean() < 0.7
    assert sorted(set(upset.gain.ravel().tolist())) == [0.8, 1.0, 1.2]
    assert (upset.gain[upset.late == 0] == 1).all()
    assert not upset.noise[:, :, upset.late == 0].any()
    sizes = upset.noise[:, :, upset.late == 1].std(axis=(0, 2))
    np.testing.assert_allclose(sizes, 0.01 * spread, rtol=0.1)
    nothing = SLIDER.model_copy(update={"robust": Robust(late=0, gain=0.0, noise=0.0)})
    assert half_disturbed(calm, nothing, spread, seed=1) is calm


def test_what_is_asked_for_is_what_is_named() -> None:
    assert [case.name for case in disturbances(Robust())] == ["late", "weak", "strong", "noisy"]
    assert disturbances(Robust(late=0, gain=0.0, noise=0.0)) == ()
    assert not Robust(phase=0.0, gain_margin=0.0, delay=0.0, ms=0.0).asks_for_margins
    with pytest.raises(ClearloopError, match="phase"):
        Task.from_dict(SLIDER.model_dump(mode="json") | {"robust": {"phase": 200.0}})


def test_a_shortfall_is_what_lacks_of_each_margin() -> None:
    found = LoopMargins(
        np.array([True, True, True, False]),
        np.array([30.0, 15.0, 90.0, 90.0]),
        np.array([2.0, 2.0, 9.0, 9.0]),
        np.array([1.5, 1.5, 9.0, 9.0]),
        np.array([2.0, 2.0, 1.1, 1.1]),
    )
    np.testing.assert_allclose(shortfall(found, Robust()), [0.0, 0.5, 0.0, 4.0])
    np.testing.assert_allclose(
        shortfall(found, Robust(phase=0.0, gain_margin=0.0, delay=0.0, ms=0.0)), [0, 0, 0, 4]
    )
    assert (shortfall(found, Robust(), 1.1)[:2] > shortfall(found, Robust())[:2]).all()


def test_a_population_lacks_what_its_members_lack(model: Surrogate) -> None:
    """As the judgement says that linearises each alone, whose models differ little here."""
    demands = Demands.of(SLIDER, slider_log(), model)
    assert demands is not None
    laws: list[Controller] = [
        law(f"-{k:g}*place - {d:g}*speed") for k in (0.02, 0.2, 1.0) for d in (0.2, 1.0)
    ]
    found = demands.shortfalls(encode(laws, SLIDER, history=1), 1)
    for one, lacks in zip(laws, found.tolist(), strict=True):
        kept = keeps(one, SLIDER, slider_log(), model)
        assert kept.robust is not None
        if lacks == 0:
            assert kept.robust
        if lacks > 0.3:
            assert not kept.robust
    assert found.min() == 0
    assert found.max() > 0.3


def test_laws_that_bend_and_laws_that_push_away_lack_more(model: Surrogate) -> None:
    demands = Demands.of(SLIDER, slider_log(), model)
    assert demands is not None
    laws: list[Controller] = [GOOD, law("-0.05*abs(place) - 0.4*speed"), law("place + speed")]
    good, bent, away = demands.shortfalls(encode(laws, SLIDER, history=1), 1).tolist()
    assert good == 0
    assert bent >= 1
    assert away == 4


@pytest.mark.parametrize("gains", [(0.05, 0.0, 0.4), (0.05, 0.002, 0.4)])
def test_a_law_with_a_memory_is_watched_on_its_own(model: Surrogate, gains: tuple[float, ...]) -> None:
    """A PID lacks what an equation of the same gains lacks."""
    kp, ki, kd = gains
    loops = {"loops": [{"input": "place", "kp": kp, "ki": ki, "kd": kd, "window": 5}]}
    pid = type(KINDS["pid"]).model_validate({"outputs": {"push": loops}})
    sums = " - ".join(f"{ki}*place[t-{k}]" for k in range(1, 5))
    same = law(f"-{kp + ki}*place - {kd}*(place - place[t-1]) - {sums}")
    task = SLIDER.model_copy(update={"history": 5})
    demands = Demands.of(SLIDER, slider_log(), model)
    assert demands is not None
    (one,) = demands.shortfalls(encode([pid], task, history=5), 5)
    (other,) = demands.shortfalls(encode([same], task, history=5), 5)
    assert one == pytest.approx(other, abs=1e-6)


def test_sums_that_a_law_does_not_read_and_inputs_do_not_count() -> None:
    """They never die out; a law that reads such a sum must bring it to rest."""
    plain = make_task(1, horizon=100)
    states = {"x0": {}, "wind": {"external": True}, "total": {"formula": "total[t-1] + x0"}}
    full = make_task(1, horizon=100, states=states)
    moves = np.zeros((3, 1, 4))
    moves[0, 0] = [0.9, 0.2, 0.0, 0.1]
    moves[1, 0, 1] = 1.0
    moves[2, 0] = [0.9, 0.2, 1.0, 0.1]
    alone = Demands(plain, np.zeros(2), np.zeros(1), np.ones(2), moves[:1][:, :, [0, 3]])
    among = Demands(full, np.zeros(4), np.zeros(3), np.ones(4), moves)
    laws = [Equation(outputs={"u0": text}) for text in ("-2*x0", "-12*x0")]
    expected = alone.shortfalls(encode(laws, plain, history=1), 1)
    np.testing.assert_allclose(among.shortfalls(encode(laws, full, history=1), 1), expected)
    assert expected[0] == 0
    assert expected[1] > 0.5
    summing = [Equation(outputs={"u0": f"-2*x0 {sign} 0.05*total"}) for sign in "-+"]
    steady, away = among.shortfalls(encode(summing, full, history=1), 1)
    assert (steady, away) == (0, 4)


def test_the_front_keeps_robust_ones_and_the_pick_is_one(model: Surrogate) -> None:
    """Whatever the others cost: they are kept beside it, and said to be without margins."""
    found = [Candidate(GOOD, 0.0), Candidate(law("-1.0*place - 1.5*speed + 0*place"), 0.0)]
    log, rng = slider_log(), np.random.default_rng(0)
    result = judge("gprl", found, SLIDER, log, model, steps=1, rng=rng, robust=True)
    robust = [point.kept.robust for point in result.points]
    assert robust.count(True) >= 1
    front = Front.of([result])
    assert front.asked
    assert front.entries[front.pick].robust
    assert result.best is result.points[front.pick].controller
    plain = judge("gprl", found, SLIDER, log, model, steps=1, rng=np.random.default_rng(0))
    assert not Front.of([plain]).asked
