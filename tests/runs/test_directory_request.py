"""What was asked, as the words that ask for it again."""

import pytest

from clearloop.cli.options import configure
from clearloop.methods.method import find_method
from clearloop.registry import METHODS
from clearloop.runs.directory import changed_settings, settings_of


@pytest.mark.parametrize(
    "assignments",
    [
        [],
        ["gprl.gp.population=80", "gprl.functions=add,mul", "gprl.gp.islands=11,15"],
        ["fpsrl.rules=2", "fpsrl.stages.swarm.inertia=0.5"],
        ["lqr.q.theta=3.0", "lqr.caution=1.5", "pid.watched=2", "pso-p.horizon=40", "nfq.hidden=5"],
    ],
)
def test_settings_are_written_as_they_are_set(assignments: list[str]) -> None:
    plain = [find_method(name)() for name in METHODS]
    configured = configure(plain, assignments)
    written = [
        f"{method.name}.{setting}"
        for method, default in zip(configured, plain, strict=True)
        for setting in changed_settings(settings_of(method), settings_of(default))
    ]
    assert sorted(written) == sorted(assignments)
    assert configure(plain, written) == configured
