"""Actions that follow no law are not said to; logs that tell little are met with sensible words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.explanation import Account, explain
from clearloop.plants.exploration import make_batch
from tests.explanation.planted import CARTPOLE, TANK, Law, Noise, drifting, held, make_log, tank

NONE = Law(kp=(0.0,))


def on_tank(noise: Noise, seed: int = 0, **more: int) -> Account:
    sizes = {"episodes": 12, "steps": 300} | more
    return explain(TANK, make_log(NONE, noise, seed, task=TANK, plant=tank, **sizes)).accounts[0]


@pytest.mark.parametrize(("size", "seed"), [(3_000, 0), (300, 1), (300, 2)])
def test_the_cart_poles_own_batch_is_random(size: int, seed: int) -> None:
    (account,) = explain(CARTPOLE, make_batch(CARTPOLE, rng=np.random.default_rng(seed), size=size)).accounts
    assert account.chosen == "random"
    assert account.independent == 1.0
    assert "look random" in account.verdict
    assert "good to learn from" in account.advice


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [held(8, 1), held(8, 5), held(8, 20), drifting(3, 0.7), drifting(3, 0.97)])
def test_random_actions_that_are_held_or_drift_are_no_law(noise: Noise, seed: int) -> None:
    account = on_tank(noise, seed)
    assert account.chosen in ("random", "planned")
    assert account.enough
    assert "look random" in account.verdict


@pytest.mark.parametrize("noise", [held(8, 1), held(8, 5), held(8, 10), drifting(3, 0.95)])
def test_an_unstable_plant_makes_no_law_of_random_actions(noise: Noise) -> None:
    (account,) = explain(CARTPOLE, make_log(NONE, noise)).accounts
    assert account.chosen in ("random", "planned")


def test_there_is_no_controller_of_random_actions() -> None:
    found = explain(TANK, make_log(NONE, held(8, 1), task=TANK, plant=tank, episodes=20))
    with pytest.raises(ClearloopError, match="no law to write: The actions look random"):
        found.controller()


def test_a_constant_action() -> None:
    log = make_log(replace(NONE, constant=2.5), held(0, 1), task=TANK, plant=tank, episodes=5)
    found = explain(TANK, log)
    (account,) = found.accounts
    assert account.chosen == "constant"
    assert account.verdict == "valve never changes: it is always 2.5."
    assert not account.enough
    controller = found.controller()
    assert isinstance(controller, Equation)
    assert controller.outputs == {"valve": "2.5"}


@pytest.mark.parametrize("rows", [1, 3])
def test_an_action_that_only_begins_otherwise_is_constant(rows: int) -> None:
    log = make_log(replace(NONE, constant=2.5), held(0, 1), task=TANK, plant=tank, episodes=5)
    for every in (slice(0, rows), np.diff(log.episodes, prepend=-1) > 0):
        actions = log.actions.copy()
        actions[every] = 1.0
        found = explain(TANK, replace(log, actions=actions))
        (account,) = found.accounts
        assert account.chosen == "constant"
        assert account.verdict == "valve is 2.5, except in the first or last rows of an episode."
        assert account.advice.startswith("The log does not show what valve does")
        controller = found.controller()
        assert isinstance(controller, Equation)
        assert controller.outputs == {"valve": "2.5"}


def test_the_last_action_of_an_episode_is_the_last_that_was_taken() -> None:
    """The row behind it shows what came of it, and has no action."""
    log = make_log(replace(NONE, constant=2.5), held(0, 1), task=TANK, plant=tank, episodes=5)
    actions, ends = log.actions.copy(), np.append(np.diff(log.episodes) > 0, True)
    actions[ends] = np.nan
    actions[np.append(ends[1:], False)] = 1.0
    (account,) = explain(TANK, replace(log, actions=actions)).accounts
    assert account.chosen == "constant"


@pytest.mark.parametrize(("moves", "enough", "good"), [(2, False, False), (8, True, False), (40, True, True)])
def test_an_action_that_hardly_moves_is_not_called_good(moves: int, enough: bool, good: bool) -> None:
    """Whatever the states are: a plant of which so little was tried stays unknown."""
    log = make_log(replace(NONE, constant=2.5), held(0, 1), task=TANK, plant=tank, episodes=1, steps=1_000)
    actions = log.actions + 1e-12 * np.random.default_rng(0).normal(size=log.actions.shape)  # rounding
    for begin in range(100, 100 + 10 * moves, 20):
        actions[begin : begin + 10] = 1.0
    (account,) = explain(TANK, replace(log, actions=actions)).accounts
    assert account.chosen in ("random", "planned")
    assert account.moves == moves
    assert account.enough == enough
    assert ("good to learn from" in account.advice) == good
    assert good or f"valve does not depend on the states, but it moves only {moves} times" in account.advice


def test_an_action_that_rests_after_a_while() -> None:
    log = make_log(NONE, held(8, 1), task=TANK, plant=tank, episodes=40, steps=40)
    steps = np.concatenate([np.arange(np.count_nonzero(log.episodes == one)) for one in range(40)])
    found = explain(TANK, replace(log, actions=np.where(steps[:, None] < 5, log.actions, 0.0)))
    assert found.accounts[0].chosen == "planned"
    assert '"own_past": 1.0' in json.dumps(found.to_dict(), allow_nan=False)


def test_a_log_that_is_too_short() -> None:
    log = make_log(NONE, held(8, 1), task=TANK, plant=tank, episodes=2, steps=20)
    with pytest.raises(ClearloopError, match="only 40 rows have an action: at least 50 are needed"):
        explain(TANK, log)


@pytest.mark.parametrize("levels", [(-5.0, 5.0), (-5.0, 0.0, 5.0)])
def test_a_switch_is_a_law_though_its_formula_is_rough(levels: tuple[float, ...]) -> None:
    log = make_log(Law(kp=(-8.0,)), held(1, 1), task=TANK, plant=tank, episodes=20, steps=100)
    nearest = np.abs(log.actions - levels).argmin(axis=1)
    switched = Batch(
        log.columns, log.states, np.array(levels)[nearest][:, None], log.episodes, log.terminal,
        setpoints=log.setpoints,
    )  # fmt: skip
    (account,) = explain(TANK, switched).accounts
    assert account.chosen == "law"
    assert 0.3 < account.law.explained < 1


@pytest.mark.parametrize(("episodes", "steps"), [(25, 2), (17, 3), (1, 50), (8, 7)])
def test_short_episodes_and_small_logs(episodes: int, steps: int) -> None:
    account = on_tank(held(8, 1), episodes=episodes, steps=steps)
    assert np.isfinite(list(dict(account.tried).values())).all()
    assert account.chosen != "constant"
