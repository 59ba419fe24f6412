"""The stages of a search by swarms: fewer descents, larger samples, and everything resumes to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.methods.evolving import Sample
from clearloop.methods.fpsrl import FPSRL
from clearloop.methods.swarm import Stages, Swarming, SwarmStage, short_decimals
from clearloop.search.cma import CMA
from clearloop.search.pso import PSO
from tests.methods.linear_plants import make_log, make_model, make_problem, make_task

U, V = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
TASK = make_task(2, symmetric=True)
LOG, MODEL = make_log(TASK, U, V), make_model(TASK, U, V)
STAGES = Stages(
    swarm=PSO(particles=12),
    explore=Sample(8, 1),
    explore_share=0.3,
    cma=CMA(candidates=8),
    descend=(
        SwarmStage(0.6, 3, Sample(8, 1)),
        SwarmStage(0.8, 2, Sample(16, 1)),
        SwarmStage(1.0, 1, Sample(16, None)),
    ),
)
BUDGET = 2_000_000


def begin(seed: int = 0) -> Swarming:
    problem = make_problem(TASK, LOG, MODEL, starts=16)
    problem.budget = BUDGET
    return FPSRL(rules=(2, 3), stages=STAGES).begin(problem, rng=np.random.default_rng(seed))


def test_stages_follow_from_the_share_of_the_budget() -> None:
    assert [STAGES.number(share) for share in (0.0, 0.29, 0.3, 0.59, 0.6, 0.8, 1.0)] == [0, 0, 1, 1, 2, 3, 3]


def test_from_stage_to_stage_fewer_go_on() -> None:
    search, seen = begin(), {}
    while search.problem.share < 1:
        search.advance()
        for number, hunt in enumerate(search.hunts):
            seen[number, hunt.stage] = len(hunt.runs)
    for number in range(2):
        counts = [seen[number, stage] for stage in range(4)]
        assert counts[0] == counts[3] == 1
        assert 2 <= counts[2] <= counts[1] <= 3  # at most as many as the swarm has summits


def test_descents_only_improve_on_the_same_sample() -> None:
    search, best, stage = begin(), np.inf, -1
    while search.problem.share < 1:
        search.advance()
        hunt = search.hunts[0]
        lowest = min(run.best[1] for run in hunt.runs)
        assert lowest <= best or hunt.stage != stage
        best, stage = lowest, hunt.stage
    assert stage == 3


@pytest.mark.parametrize("share", [0.1, 0.45, 0.7, 0.9])
def test_resumes_to_the_bit(share: float) -> None:
    whole, state = begin(), None
    while whole.problem.share < 1:
        if state is None and whole.problem.share >= share:
            state, spent = whole.state(), whole.problem.spent
        whole.advance()
    assert state is not None
    resumed = begin(seed=1)
    resumed.problem.spent = spent
    resumed.restore(state)
    while resumed.problem.share < 1:
        resumed.advance()
    assert resumed.candidates() == whole.candidates()
    assert resumed.best == whole.best


def test_what_was_never_evaluated_is_no_candidate() -> None:
    search = begin()
    assert search.candidates() == []
    search.advance()
    assert len(search.candidates()) == 1


@settings(deadline=None)
@given(st.lists(st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-12), min_size=1))
def test_rounding_gives_short_decimals(values: list[float]) -> None:
    near = short_decimals(np.array(values))
    assert near.tolist() == [float(f"{value:.4g}") for value in near]
    assert near == pytest.approx(values, rel=6e-4)
