"""From a log whose setpoint moves, a search finds laws that read the setpoint itself."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.expression import Variable, variables
from clearloop.methods import Result, learn
from clearloop.methods.evolving import Rounds, Sample
from clearloop.methods.gprl import GPRL
from clearloop.plants.exploration import make_batch
from clearloop.search.gp.genome import GP
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.verification import Amount, verify
from tests.surrogate.models import QUICK

# A heater with dead time, which forbids large gains: without a feed-forward an offset stays.
OVEN = Task.from_toml("""
name = "oven"
dt = 1.0
discount = 0.98
horizon = 60
history = 3
memory = ["integral"]

[states]
warmth = { unit = "K", setpoint = "wanted" }
ambient = { unit = "K", external = true }

[actions]
power = { unit = "kW", limits = [0.0, 10.0] }

[reward]
expression = "-abs(warmth.error) - 0.3*abs(power - power[t-1])"

[starts]
warmth = [0.0, 12.0]

[signals]
wanted = { steps = [2.0, 12.0], every = [25, 40] }
ambient = { steps = [-3.0, 3.0], every = [20, 50] }
dither = { steps = [-1.5, 1.5], every = [2, 6] }

[exploration]
size = 1500
steps = 100
law = { power = "4 - 0.5*warmth.error + dither" }

[plant.derivative]
warmth = "(1.5*power[t-2] + ambient - warmth)/8"
""")
GENTLE = GPRL(
    gp=GP(islands=(7, 11, 15, 19), migration=2, offspring=40, population=20, moves=0.3, setpoints=True),
    rounds=Rounds(
        race=Sample(16, 1), tune=Sample(32, 1), score=Sample(64, 1), final=Sample(64, None),
        explore_share=0, sow=True,
    ),
)  # fmt: skip


AMOUNT = Amount(episodes=3, tries=0, share=0.2)


@pytest.fixture(scope="module")
def fronts() -> tuple[Result, Result]:
    """What is learned from the same log with setpoints as variables, and without."""
    log = make_batch(OVEN, rng=np.random.default_rng(0))
    model = Surrogate.fit(OVEN, log, track=QUICK, rng=np.random.default_rng(1))
    methods = (replace(GENTLE, gp=replace(GENTLE.gp, setpoints=setpoints)) for setpoints in (True, False))
    led, blind = (
        learn(OVEN, log, method, rng=np.random.default_rng(2), budget=8_000_000, surrogate=model)
        for method in methods
    )
    return led, blind


def test_feed_forward_of_a_moving_setpoint_is_found_and_pays(fronts: tuple[Result, Result]) -> None:
    (best, other) = (front.points[-1] for front in fronts)
    assert isinstance(best.controller, Equation)
    read = variables(best.controller.formula("power"))
    assert {Variable("warmth", "setpoint"), Variable("ambient")} <= set(read)
    assert best.system is not None
    assert other.system is not None
    assert best.system.penalty < 0.9 * other.system.penalty


def test_without_it_a_law_with_a_state_of_its_own_is_found(fronts: tuple[Result, Result]) -> None:
    """Only the integral, a ready feature, removes the offset then."""
    assert "warmth_integral" in fronts[1].best.derived


def test_both_are_exported_as_the_same_functions(fronts: tuple[Result, Result], tmp_path: Path) -> None:
    for front in fronts:
        rng = np.random.default_rng(3)
        assert verify(front.best, to="python", folder=tmp_path, rng=rng, amount=AMOUNT).equal
