"""Batches drawn from a plant."""

from typing import Any

import numpy as np
import pytest

from clearloop.data import Batch, check
from clearloop.errors import ClearloopError
from clearloop.kernels.engine import roll_out
from clearloop.plants import exploration
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from tests import twin
from tests.controllers.kinds import CARTPOLE
from tests.data.logs import same
from tests.plants.mixer import MIXER, TEXT, course


@pytest.fixture(scope="module")
def batch() -> Batch:
    return make_batch(CARTPOLE, rng=np.random.default_rng(0))


@pytest.mark.parametrize("size", [1, 2, 19, 20, 21, 1_000, 4_321])
def test_exactly_as_many_transitions_as_wanted(size: int) -> None:
    assert len(make_batch(CARTPOLE, rng=np.random.default_rng(1), size=size)) == size


def test_the_protocol_of_the_cart_pole(batch: Batch) -> None:
    assert len(batch) == 10_000
    steps = np.bincount(batch.episodes) - 1
    assert steps.max() == 20
    assert steps.min() >= 1
    assert 0.05 < batch.terminal.sum() / len(batch) < 0.07  # measured: 5.9 % of the transitions fail
    first = np.diff(batch.episodes, prepend=-1) > 0
    starts = batch.states[first]
    assert (np.abs(starts) <= [0.7, 2.0, 2.4, 2.0]).all()
    assert (np.abs(starts).max(axis=0) > [0.69, 1.97, 2.37, 1.97]).all()
    actions = batch.actions[~np.isnan(batch.actions)]
    assert np.abs(actions).max() <= 10
    np.testing.assert_allclose(np.histogram(actions, 10, (-10, 10))[0] / len(actions), 0.1, atol=0.015)
    assert check(CARTPOLE, batch).severity in ("ok", "note")


def test_every_transition_is_the_twins_step(batch: Batch) -> None:
    rows = np.flatnonzero(batch.episodes[1:] == batch.episodes[:-1])
    after, rewards, failed = twin.step(batch.states[rows], batch.actions[rows, 0])
    assert batch.rewards is not None
    assert batch.times is not None
    np.testing.assert_allclose(batch.states[rows + 1], after, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(batch.rewards[rows], rewards)
    np.testing.assert_array_equal(batch.terminal[rows + 1], failed)
    np.testing.assert_allclose(np.diff(batch.times)[rows], 0.025)
    assert not batch.states[batch.terminal][:, [1, 3]].any()


def test_episodes_that_fail_at_once_are_drawn_together_and_not_played_to_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task with starts far outside its limits: every episode has one step."""
    document = CARTPOLE.model_dump(mode="json", exclude_none=True)
    document["exploration"] |= {"starts": {"theta": [0.8, 0.9]}, "steps": 1_000}
    recorded: list[int] = []

    def counting(*arguments: Any, **named: Any) -> Any:
        rollout = roll_out(*arguments, **named)
        if rollout.states is not None:
            recorded.append(rollout.states.shape[3])
        return rollout

    monkeypatch.setattr(exploration, "roll_out", counting)
    batch = make_batch(Task.from_dict(document), rng=np.random.default_rng(0), size=600)
    assert len(batch) == 600 == batch.terminal.sum()
    assert len(recorded) < 140
    assert set(recorded) == {2}  # the start, and the step that fails


def test_the_last_row_of_an_episode_has_neither_action_nor_reward(batch: Batch) -> None:
    last = np.append(np.diff(batch.episodes) > 0, True)
    assert batch.rewards is not None
    np.testing.assert_array_equal(np.isnan(batch.actions[:, 0]), last)
    np.testing.assert_array_equal(np.isnan(batch.rewards), last)


def test_the_same_seed_gives_the_same_batch() -> None:
    one, two, other = (make_batch(CARTPOLE, rng=np.random.default_rng(s), size=300) for s in (3, 3, 4))
    assert same(one, two)
    assert one.fingerprint() == two.fingerprint() != other.fingerprint()


def test_rewards_and_failures_that_look_back() -> None:
    drawn = make_batch(MIXER, rng=np.random.default_rng(2))
    assert len(drawn) == 500
    assert drawn.rewards is not None
    assert drawn.terminal.sum() > 10
    for episode in range(drawn.episode_count):
        rows = np.flatnonzero(drawn.episodes == episode)
        steps = [(inlet, burner) for inlet, burner in drawn.actions[rows[:-1]]]
        start = drawn.states[rows[0]]
        states, rewards, failed = course((start[0], start[1]), steps)
        np.testing.assert_allclose(drawn.states[rows], states, rtol=0, atol=1e-12)
        assert drawn.rewards[rows[:-1]].tolist() == rewards
        assert drawn.terminal[rows].tolist() == [False] * len(steps) + [failed]


def test_a_plant_that_fails_where_it_stands_is_cut_there_too() -> None:
    """Failure can come without motion: here by the action alone, and the state never changes."""
    text = TEXT.replace(
        'derivative = { level = "inlet", heat = "burner - inlet*0.5" }',
        'derivative = { level = "0", heat = "0" }',
    )
    text = text.replace(
        '"heat > 3.0123 and burner[t-2] > 0.2101 and level[t] < 5"', '"burner > 1.5"'
    ).replace("on_failure = { heat = -1.0 }", "")
    drawn = make_batch(Task.from_toml(text), rng=np.random.default_rng(0), size=400)
    for episode in range(drawn.episode_count):
        rows = np.flatnonzero(drawn.episodes == episode)
        assert drawn.rewards is not None
        failing = drawn.rewards[rows[:-1]] == -2.0
        assert not failing[:-1].any()
        assert drawn.terminal[rows[-1]] == failing[-1]


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ClearloopError, match="at least one transition, not 0"):
        make_batch(CARTPOLE, rng=np.random.default_rng(0), size=0)


NO_PLANT = TEXT[: TEXT.index("[plant]")]
NO_BOX = TEXT.replace("level = [-1.0, 2.5]\nheat = [0.0, 0.5]", 'from = "batch"')
LOGGED_AIM = TEXT.replace("setpoint = 1.0", 'setpoint = "aim"')
REFUSED = {
    r"task 'mixer' has no \[plant\] of equations to draw a batch from: learn from a log \(--data\)": NO_PLANT,
    r"task 'mixer': give \[exploration\] starts, to draw a batch from": NO_BOX,
    "the setpoint of 'level' is the log column 'aim'; without a log it needs a number": LOGGED_AIM,
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_task_that_cannot_explore_says_why(message: str) -> None:
    with pytest.raises(ClearloopError, match=message):
        make_batch(Task.from_toml(REFUSED[message]), rng=np.random.default_rng(0))


def test_actions_in_steps_are_drawn_as_such() -> None:
    tables = MIXER.model_dump(mode="json")
    tables["actions"]["inlet"]["step"] = 0.5
    tables["actions"]["burner"]["step"] = 2.0  # on or off
    batch = make_batch(Task.from_dict(tables), rng=np.random.default_rng(0))
    inlet, burner = batch.actions[~np.isnan(batch.actions[:, 0])].T
    assert np.unique(inlet).tolist() == [-1, -0.5, 0, 0.5, 1]
    assert np.unique(burner).tolist() == [0, 2]
    assert 0.4 < (burner > 0).mean() < 0.6
    assert 0.12 < (inlet == 1).mean() < 0.28  # the ends are as likely as the rest
