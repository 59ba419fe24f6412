from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.surrogate import BEST, PUBLISHED, Surrogate, Track
from clearloop.surrogate.fitting import KnownReward, LearnedReward
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

from .conftest import learn
from .models import CARTPOLE, CARTPOLE_BY_COLUMN, QUICK, tank_log


def test_best_track(best: Surrogate) -> None:
    assert repr(best) == (
        "Surrogate of cartpole: 3 members of 4 networks 5-10-10-10-1,"
        " the task's own reward, absorbing failure"
    )
    assert isinstance(best.reward, KnownReward)
    assert best.failure.to_dict(CARTPOLE.state_names) == {"theta_dot": 0.0, "rho_dot": 0.0}
    assert (best.search_members, best.judge_members) == ((0, 1), (2,))
    system = best.system()
    assert system.dynamics.absorbing
    assert np.array_equal(system.dynamics.on_failure, [np.nan, 0.0, np.nan, 0.0], equal_nan=True)


def test_published_track(published: Surrogate) -> None:
    assert repr(published) == (
        "Surrogate of cartpole: 1 member of 4 networks 5-10-10-10-1, reward learned as 3 classes"
    )
    assert isinstance(published.reward, LearnedReward)
    assert published.reward.networks[0].sizes == (4, 10, 10, 10, 3)
    assert published.reward.levels.tolist() == [0.0, -0.1, -1.0]
    assert published.reward.failing.tolist() == [False, False, True]
    assert published.search_members == published.judge_members == (0,)
    assert not published.system().dynamics.absorbing


def test_a_learned_reward_sees_the_step_without_what_failure_alters(by_column: Surrogate) -> None:
    assert isinstance(by_column.reward, LearnedReward)
    for network in by_column.reward.networks:
        blind = (network.weights[0] == 0).all(axis=0)
        # θ θ̇ ρ ρ̇ after the step, the same and the force before, setpoints, which never vary
        assert blind.tolist() == [False, True, False, True] + 5 * [False] + 4 * [True]


def test_where_nothing_is_to_be_predicted_there_is_no_model() -> None:
    task = Task.from_toml(
        'name = "wind"\ndt = 1.0\ndiscount = 0.9\nhorizon = 5\n[states]\nwind = { external = true }\n'
        '[actions]\nu = { limits = [0, 1] }\n[reward]\nexpression = "-abs(wind)"\n'
    )
    with pytest.raises(ClearloopError, match="task 'wind': there is no state to predict"):
        learn(task, tank_log(), QUICK)


def test_tracks_of_the_design() -> None:
    assert (BEST.search, BEST.judge, PUBLISHED.members) == (5, 5, 1)
    assert BEST.training.hidden == PUBLISHED.training.hidden == (10, 10, 10)
    with pytest.raises(ClearloopError, match="at least 1 member"):
        Track(search=0)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(
    best: Surrogate, cartpole_batch: Batch, tmp_path: Path
) -> None:
    best.save(tmp_path / "one")
    learn(CARTPOLE, cartpole_batch, QUICK).save(tmp_path / "again")
    learn(CARTPOLE, cartpole_batch, QUICK, seed=1).save(tmp_path / "other")
    for name in ("surrogate.json", "surrogate.safetensors"):
        one, again, other = (Path(tmp_path, run, name).read_bytes() for run in ("one", "again", "other"))
        assert one == again != other


def test_every_member_is_another(surrogate: Surrogate) -> None:
    window = np.ones((1, surrogate.region.shape[0]))
    predictions = [surrogate.predict(window, member) for member in range(surrogate.members)]
    assert np.unique(predictions, axis=0).shape[0] == surrogate.members


def test_some_members_make_a_system_of_their_own(best: Surrogate) -> None:
    whole, part = best.system(np.float64), best.system(np.float64, members=(2, 0))
    of_member = whole.dynamics.networks.numbers.reshape(3, -1)
    assert part.members == 2
    assert np.array_equal(part.dynamics.networks.numbers.reshape(2, -1), of_member[[2, 0]])


def test_dynamics_are_learned(best: Surrogate, cartpole_batch: Batch) -> None:
    steps = Steps.of(CARTPOLE, best.split(cartpole_batch)[1])
    ordinary = steps[~steps.failing]
    for member in range(best.members):
        errors = best.predict(ordinary.window, member) - ordinary.next
        assert (errors.var(axis=0) < 0.02 * ordinary.change.var(axis=0)).all()


def test_progress_covers_all_networks(cartpole_batch: Batch) -> None:
    told: list[float] = []
    track, rng = replace(QUICK, known_reward=False), np.random.default_rng(0)
    Surrogate.fit(
        CARTPOLE, cartpole_batch, track=track, rng=rng, progress=lambda share, _: told.append(share)
    )
    epochs = np.arange(1, QUICK.training.epochs + 1) / QUICK.training.epochs
    # First θ and ρ, then their velocities, then the reward: five networks for each member.
    assert told == pytest.approx([*(0.4 * epochs), *(0.4 + 0.4 * epochs), *(0.8 + 0.2 * epochs)])


def test_the_held_out_part_is_known_of_its_own_batch_only(best: Surrogate, cartpole_batch: Batch) -> None:
    training, held_out = best.split(cartpole_batch)
    assert len(training) + len(held_out) == len(cartpole_batch)
    assert len(held_out) == pytest.approx(0.1 * len(cartpole_batch), abs=20)
    window = training.transitions().window
    assert np.array_equal(best.region, np.stack([window.min(axis=0), window.max(axis=0)], axis=1))
    with pytest.raises(ClearloopError, match="another batch"):
        best.split(training)


def test_a_reward_that_is_neither_logged_nor_known_is_refused(cartpole_batch: Batch) -> None:
    with pytest.raises(ClearloopError, match="no column"):
        learn(CARTPOLE_BY_COLUMN, replace(cartpole_batch, rewards=None), QUICK)


def test_a_value_is_learned_where_rewards_are_many(tank: Surrogate) -> None:
    assert isinstance(tank.reward, LearnedReward)
    assert tank.reward.levels.size == 0
    assert {network.sizes for network in tank.reward.networks} == {(2 + 9 + 2, 10, 10, 10, 1)}
    assert repr(tank).endswith("2 networks 9-10-10-10-1, reward learned as a value")
    assert len(tank.split(tank_log())[1]) == 76
