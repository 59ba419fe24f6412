"""Disturbed loops, beside the undisturbed."""

import numpy as np
import pytest

from clearloop.controllers import Controller
from clearloop.diagnosis.robustness import Robustness, disturb
from clearloop.evaluation import evaluate
from clearloop.plants.scenarios import Disturbance
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.evaluation.planners import make_model
from tests.evaluation.test_rollouts import MIXING
from tests.plants.mixer import MIXER
from tests.surrogate.models import SLIDER

from .plants import FIRST_ORDER, integrating


def run(
    controller: Controller,
    task: Task,
    *disturbances: Disturbance,
    surrogate: Surrogate | None = None,
    n: int = 24,
) -> Robustness:
    return disturb(
        controller,
        task,
        spread=np.ones(len(task.states)),
        starts=task.scoring_starts(n),
        rng=np.random.default_rng(0),
        surrogate=surrogate,
        disturbances=disturbances,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_undisturbed_it_is_what_evaluate_says(kind: str) -> None:
    found, expected = run(KINDS[kind], CARTPOLE), evaluate(KINDS[kind], CARTPOLE, starts=24)
    assert found.penalty == pytest.approx(expected.penalty, abs=1e-9)
    assert found.failures == expected.failures


def test_undisturbed_where_the_reward_looks_back_on_two_actions() -> None:
    expected = evaluate(MIXING, MIXER, starts=24)
    assert run(MIXING, MIXER).penalty == pytest.approx(expected.penalty, abs=1e-9)


@pytest.mark.parametrize("absorbing", [True, False])
def test_undisturbed_on_the_members_of_a_model(absorbing: bool) -> None:
    model = make_model("slider", absorbing=absorbing)
    controller = KINDS["equation"].model_copy(update={"outputs": {"push": "0.5*place + speed"}})
    starts = np.array([[4.0, 1.0], [0.0, 0.0], [-3.0, 0.5]])
    found = disturb(
        controller, SLIDER, spread=np.ones(2), starts=starts, rng=np.random.default_rng(0), surrogate=model
    )
    expected = evaluate(controller, SLIDER, surrogate=model, starts=starts)
    assert found.penalty == pytest.approx(expected.penalty, abs=1e-9)
    assert found.failures == expected.failures
    assert 0 < found.failures < 1


@pytest.mark.parametrize("nothing", [Disturbance("no noise", noise=0.0), Disturbance("unit gain", gain=1.0)])
def test_no_disturbance_changes_nothing(nothing: Disturbance) -> None:
    found = run(KINDS["pid"], CARTPOLE, nothing)
    (one,) = found.disturbed
    assert one.change == one.standard_error == 0.0
    assert (one.penalty, one.failures) == (found.penalty, found.failures)


def test_a_delay_breaks_a_deadbeat_loop() -> None:
    """u = -e / dt is there in one step; late, z² = z - 1 swings for ever; stronger, it grows."""
    late = Disturbance("late", late=1)
    assert run(integrating(10.0), FIRST_ORDER, late).disturbed[0].failures == 0.0
    found = run(integrating(15.0), FIRST_ORDER, late)
    assert found.failures == 0.0
    assert found.disturbed[0].failures == 1.0
    assert found.disturbed[0].change > 0


def test_a_gain_beyond_the_limit_of_stability() -> None:
    """1 - k dt leaves the unit circle beyond k = 20."""
    found = run(
        integrating(18.0), FIRST_ORDER, Disturbance("20 % more", gain=1.2), Disturbance("less", gain=0.8)
    )
    more, less = found.disturbed
    assert found.failures == less.failures == 0.0
    assert more.failures > 0.9


def test_a_gain_is_that_of_other_gains() -> None:
    found = run(KINDS["equation"], CARTPOLE, Disturbance("half", gain=0.5))
    halved = KINDS["equation"].model_copy(
        update={"outputs": {"force": "clip(69.8*theta + 20*theta_dot + 10*rho + 9.4*rho_dot, -10, 10)/2"}}
    )
    expected = evaluate(halved, CARTPOLE, starts=24)
    assert found.disturbed[0].penalty == pytest.approx(expected.penalty, abs=1e-9)


def test_a_delay_is_that_of_a_law_that_answers_late() -> None:
    """From the second step on, what a law of the last state would do."""
    lagged = KINDS["equation"].model_copy(
        update={"outputs": {"force": "69.8*theta[t-1] + 20*theta_dot[t-1] + 10*rho[t-1] + 9.4*rho_dot[t-1]"}}
    )
    found = run(KINDS["equation"], CARTPOLE, Disturbance("late", late=1))
    similar = evaluate(lagged, CARTPOLE, starts=24)  # its first action is not 0
    assert found.disturbed[0].penalty == pytest.approx(similar.penalty, rel=0.5)
    assert found.disturbed[0].change > 0.1


def test_actuators_keep_their_limits() -> None:
    bang = KINDS["equation"].model_copy(update={"outputs": {"force": "if(theta > 0, 10, -10)"}})
    found = run(bang, CARTPOLE, Disturbance("twice", gain=2.0))
    assert found.disturbed[0].change == 0.0


def test_noise_is_seen_by_the_controller_alone() -> None:
    """An integrator under u = -e / dt lands at minus the noise of each step: y = 2 - n."""
    task = FIRST_ORDER.model_copy(update={"horizon": 1})
    cases = (Disturbance("one", noise=1.0), Disturbance("far", noise=1_000.0))
    little, much = run(integrating(10.0), task, *cases, n=400).disturbed
    assert little.failures == 0.0
    assert much.failures == pytest.approx(0.92, abs=0.05)  # |2 - 1,000 n| > 100


def test_the_same_random_numbers_every_time() -> None:
    case = Disturbance("noise", noise=0.05)
    one, other = (run(KINDS["fuzzy"], CARTPOLE, case, case) for _ in range(2))
    assert one.to_dict() == other.to_dict()
    first, second = one.disturbed
    assert (first.penalty, first.failures) == (second.penalty, second.failures)


def test_the_standard_error_is_that_of_paired_starts() -> None:
    """Each start alone gives its own change; their spread over √N is the error of the mean."""
    starts, gain = CARTPOLE.scoring_starts(12), Disturbance("gain", gain=0.5)
    alone = [
        disturb(
            KINDS["pid"], CARTPOLE, spread=np.ones(4), starts=starts[[n]], rng=np.random.default_rng(0),
            disturbances=[gain],
        ).disturbed[0]
        for n in range(len(starts))
    ]  # fmt: skip
    assert {one.standard_error for one in alone} == {0.0}
    changes = [one.change for one in alone]
    (together,) = run(KINDS["pid"], CARTPOLE, gain, n=12).disturbed
    assert together.change == pytest.approx(np.mean(changes))
    assert together.standard_error == pytest.approx(np.std(changes, ddof=1) / np.sqrt(12))
    assert together.standard_error > 0
