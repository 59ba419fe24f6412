"""Laws that were planted are found again, with all of their gains within 5 %."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.explanation import Account, explain
from clearloop.task import Task
from tests.explanation.planted import CARTPOLE, TANK, Law, Noise, drifting, held, make_log, tank, white

QUIET = white(0.3)
LINEAR = Law(kp=(38.8, 10.1, 2.8, 3.9))
PD = Law(kp=(40.0, 0.0, 3.0, 0.0), kd=(10.0, 0.0, 4.0, 0.0), pole=0.5)
PI = Law(kp=(-8.0,), ki=(-1.5,))
PID = Law(kp=(-8.0,), ki=(-1.5,), kd=(-6.0,), pole=0.5)


def on_cartpole(law: Law, noise: Noise = QUIET, reach: float = 10.0) -> Account:
    return explain(CARTPOLE, make_log(law, noise, episodes=60, reach=reach)).accounts[0]


def on_tank(law: Law, noise: Noise = QUIET, reach: float = 10.0, episodes: int = 25) -> Account:
    log = make_log(law, noise, episodes=episodes, steps=300, reach=reach, task=TANK, plant=tank)
    return explain(TANK, log).accounts[0]


def expect(account: Account, law: Law, task: Task) -> None:
    """The same terms, and each gain within 5 %."""
    kinds = (("value", law.kp), ("sum", law.ki), ("rate", law.kd))
    planted = {
        (kind, name): gain
        for kind, gains in kinds
        for name, gain in zip(task.state_names, np.broadcast_to(gains, len(task.states)), strict=True)
        if gain
    }
    found = {(t.kind, t.state): g for t, g in zip(account.law.terms, account.law.gains, strict=True)}
    assert account.chosen == "law"
    assert found == pytest.approx(planted, rel=0.05)
    assert account.law.structure.delay == law.delay
    assert account.law.constant == pytest.approx(law.constant, rel=0.05)


@pytest.mark.parametrize(
    "law",
    [LINEAR, replace(LINEAR, delay=1), replace(LINEAR, constant=1.5), PD, replace(PD, pole=0.0)],
    ids=["linear", "delayed", "with a constant", "filtered PD", "PD"],
)
def test_a_law_on_the_cart_pole(law: Law) -> None:
    account = on_cartpole(law)
    expect(account, law, CARTPOLE)
    assert account.law.structure.pole == pytest.approx(
        law.pole or None if law.kd == (0.0,) else law.pole, abs=0.06
    )
    assert 0.9 < account.law.explained < 0.999


@pytest.mark.parametrize("law", [PI, PID, replace(PID, pole=0.0)], ids=["PI", "filtered PID", "PID"])
def test_a_pid_law_with_changing_setpoints(law: Law) -> None:
    account = on_tank(law)
    expect(account, law, TANK)
    (loop,) = account.loops()
    assert loop.kp == pytest.approx(-law.kp[0], rel=0.05)
    assert loop.ti == pytest.approx(law.kp[0] / law.ki[0], rel=0.1)
    assert account.law.kind == ("PID" if law.kd[0] else "PI")


def test_a_sum_over_a_window() -> None:
    law = replace(PI, window=40)
    account = on_tank(law)
    expect(account, law, TANK)
    assert account.law.windows == {"level": 40}


@pytest.mark.parametrize("law", [replace(LINEAR, kp=(120.0, 30.0, 8.0, 12.0))], ids=["steep"])
def test_a_law_that_is_often_at_its_limits(law: Law) -> None:
    account = on_cartpole(law, white(1.0), reach=6.0)
    assert account.saturated > 0.05
    expect(account, law, CARTPOLE)


def test_a_pid_law_that_is_often_at_its_limits() -> None:
    account = on_tank(PID, reach=4.0)
    assert account.saturated > 0.02
    expect(account, PID, TANK)


@pytest.mark.parametrize("noise", [drifting(0.5, 0.9), held(0.6, 7)], ids=["drifting", "held"])
@pytest.mark.parametrize("law", [Law(kp=(-8.0,)), PID], ids=["P", "PID"])
def test_a_law_with_noise_that_lasts(law: Law, noise: Noise) -> None:
    expect(on_tank(law, noise, episodes=50), law, TANK)


def test_an_exact_law_leaves_nothing() -> None:
    account = on_cartpole(LINEAR, white(0.0))
    expect(account, LINEAR, CARTPOLE)
    assert account.law.explained == pytest.approx(1.0, abs=1e-9)
    assert not account.enough
    assert "too little to learn" in account.advice


def test_the_standard_errors_are_of_the_right_size() -> None:
    """Gains of many logs scatter as each of them says."""
    law = Law(kp=(-8.0,))
    logs = [
        make_log(law, white(0.5), seed, episodes=5, steps=100, task=TANK, plant=tank) for seed in range(12)
    ]
    laws = [explain(TANK, log).accounts[0].law for log in logs]
    assert all(len(found.gains) == 1 for found in laws)
    off: Floats = np.array([(found.gains[0] + 8.0) / found.errors[0] for found in laws])
    assert 0.4 < np.sqrt(np.mean(off**2)) < 2.5


def test_an_equation() -> None:
    class Cubic(Law):
        def ask(self, past: list[Floats], rate: Floats, dt: float) -> tuple[Floats, Floats]:
            return super().ask(past, rate, dt)[0] - 6 * past[-1][:, 0] ** 3, rate

    log = make_log(Cubic(kp=(-3.0,)), white(0.2), episodes=50, steps=300, task=TANK, plant=tank)
    found = explain(TANK, log)
    assert found.accounts[0].law.kind == "equation"
    controller = found.controller()
    for error in (-0.8, 0.3, 0.8):
        answer = controller.act({"level": error}, controller.reset(), {"level": 0.0})
        assert answer["valve"] == pytest.approx(-3 * error - 6 * error**3, rel=0.05)


def test_each_of_several_actions_has_its_own_law() -> None:
    task = Task.from_dict(
        {
            "name": "two", "dt": 0.1, "discount": 0.9, "horizon": 10, "states": {"x": {}, "y": {}},
            "actions": {"a": {"limits": [-9, 9]}, "b": {"limits": [-9, 9]}, "c": {"limits": [-9, 9]}},
            "reward": {"expression": "-abs(x)"},
        }
    )  # fmt: skip
    rng = np.random.default_rng(0)
    states = rng.normal(0, 1, (2000, 2))
    actions = np.stack([2 * states[:, 0], rng.uniform(-9, 9, 2000), np.full(2000, 3.0)], axis=1)
    actions[:, 0] += rng.normal(0, 0.2, 2000)
    actions[99::100] = np.nan  # nothing is chosen in an episode's last row
    log = Batch(task.columns, states, actions, np.repeat(np.arange(20), 100), np.zeros(2000, np.bool_))
    found = explain(task, log)
    assert [account.chosen for account in found.accounts] == ["law", "random", "constant"]
    assert found.accounts[0].law.gains == pytest.approx([2.0], rel=0.05)
    controller = found.controller()
    answer = controller.act({"x": 1.0, "y": 5.0}, controller.reset())
    assert answer == pytest.approx({"a": 2.0, "b": np.nanmean(actions[:, 1]), "c": 3.0}, rel=0.05)
