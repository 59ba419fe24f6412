import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.surrogate import Surrogate, Track
from clearloop.task import Task

from .models import CARTPOLE, CARTPOLE_BY_COLUMN, QUICK, QUICK_PUBLISHED, TANK, cartpole_log, tank_log


def learn(task: Task, batch: Batch, track: Track, seed: int = 0) -> Surrogate:
    return Surrogate.fit(task, batch, track=track, rng=np.random.default_rng(seed))


@pytest.fixture(scope="session")
def cartpole_batch() -> Batch:
    return cartpole_log(2_000)


@pytest.fixture(scope="session")
def best(cartpole_batch: Batch) -> Surrogate:
    return learn(CARTPOLE, cartpole_batch, QUICK)


@pytest.fixture(scope="session")
def published(cartpole_batch: Batch) -> Surrogate:
    return learn(CARTPOLE, cartpole_batch, QUICK_PUBLISHED)


@pytest.fixture(scope="session")
def by_column(cartpole_batch: Batch) -> Surrogate:
    """The best track where the reward is known from the log only."""
    return learn(CARTPOLE_BY_COLUMN, cartpole_batch, QUICK)


@pytest.fixture(scope="session")
def tank() -> Surrogate:
    """History, setpoints, and a reward that is a value."""
    return learn(TANK, tank_log(), QUICK)


@pytest.fixture(params=["best", "published", "by_column", "tank"])
def surrogate(request: pytest.FixtureRequest) -> Surrogate:
    """One of each kind."""
    found: Surrogate = request.getfixturevalue(request.param)
    return found
