"""Methods by name, and what settings they take."""

import re
from dataclasses import fields, is_dataclass

import pytest

from clearloop.cli.options import configure
from clearloop.errors import ClearloopError
from clearloop.methods.evolving import Sample
from clearloop.methods.method import find_method
from clearloop.methods.swarm import SwarmStage
from clearloop.registry import METHODS


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_known_by_its_own_name_and_needs_no_settings(name: str) -> None:
    method = find_method(name)
    assert method.name == name
    assert is_dataclass(method)
    assert method() == method()
    assert "name" not in [field.name for field in fields(method)]


def test_an_unknown_method_is_answered_with_a_suggestion() -> None:
    with pytest.raises(ClearloopError, match="no method 'GPRL'; did you mean 'gprl'"):
        find_method("GPRL")
    with pytest.raises(ClearloopError, match="no method 'magic'; expected one of: gprl, "):
        find_method("magic")


@pytest.mark.parametrize(
    "setting",
    [
        *(f"gprl.gp.{one}=0" for one in ("population", "offspring", "tournament", "tries", "patience")),
        "gprl.gp.islands=0", "gprl.gp.islands=", "fgprl.gp.islands=21,-1", "fgprl.gp.crossover=-0.1",
        "gprl.gp.tournament=1e9", "gprl.rounds.race=0,1", "gprl.rounds.final=16,0", "gprl.rounds.promoted=0",
        "gprl.rounds.polished=-1", "gprl.rounds.final_share=1", "fgprl.rounds.explore_share=2",
        "fpsrl.rules=", "fpsrl.rules=0", "fpsrl.rules=2,-1", "fpsrl.stages.explore=-3,1",
        "fpsrl.stages.descend=", "fpsrl.stages.swarm.particles=0", "psonn.stages.swarm.particles=1e9",
        "psonn.stages.swarm.reach=-1", "psonn.stages.swarm.fastest=-1", "psonn.stages.cma.candidates=1",
        "psonn.stages.cma.spread=0", "psonn.stages.explore_share=-1", "psonn.hidden=3,0",
        "pid.swarm.particles=0", "pid.rounds=0", "pid.starts=0", "pid.watched=0", "pid.push=0",
        *(f"pso-p.{one}=0" for one in ("horizon", "hold", "particles", "rounds", "members", "tried")),
        "pso-p.horizon=10001", "nfq.levels=1", "nfq.iterations=0", "nfq.epochs=0", "nfq.hidden=3,0",
        "nfq.decay=-1e-9", "cloning.hidden=0", "cloning.epochs=0", "cloning.held_out=1",
        "lqr.q.x=-1", "lqr.r.u=0", "lqr.caution=0",
    ],
)  # fmt: skip
def test_settings_that_would_crash_or_hang_are_refused(setting: str) -> None:
    path = setting.partition("=")[0]
    method, *names = path.split(".")
    field = names[-2] if names[0] in ("q", "r") else names[-1]
    expected = (
        rf"--set {re.escape(setting)}: [\w-]+: {field}( = .+)?: expected (from .+ to .+|at least one .+)$"
    )
    with pytest.raises(ClearloopError, match=expected):
        configure([find_method(method)()], [setting])


@pytest.mark.parametrize("stage", [(0.5, 0, Sample(8, 1)), (0.5, -2, Sample(8, 1)), (1.5, 1, Sample(8, 1))])
def test_so_are_stages_of_a_search(stage: tuple[float, int, Sample]) -> None:
    with pytest.raises(ClearloopError, match=r"stage: (descents|until) = .+: expected from"):
        SwarmStage(*stage)
