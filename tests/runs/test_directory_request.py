"""What was asked, as the words that ask for it again."""

import json
from dataclasses import replace

import pytest

from clearloop.cli.options import configure
from clearloop.methods.method import find_method
from clearloop.registry import METHODS
from clearloop.runs.directory import Request, changed_settings, settings_of


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


WISHED = Request(
    command="bench", task="my.toml", data=("a.csv", "b.csv"), methods=(find_method("lqr")(),), budget=7,
    track="published", value="batch", seed=3, robust=True, stay=0.25,
)  # fmt: skip


def test_a_request_comes_back_whole() -> None:
    plain = WISHED.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert Request.from_dict(plain) == WISHED
    old = {key: value for key, value in plain.items() if key not in ("robust", "stay")}
    assert Request.from_dict(old) == replace(WISHED, robust=False, stay=0.0)
