"""A kind of controller may come from another package: a formula for each action is all that it needs."""

from typing import Literal

import pytest

from clearloop.controllers import KINDS, Equation, FormulaController, encode, from_json, register, to_json
from clearloop.errors import ClearloopError
from clearloop.exports import export
from clearloop.expression import Expression, parse
from tests.controllers.kinds import CARTPOLE


class Power(FormulaController):
    kind: Literal["power"] = "power"
    outputs: dict[str, tuple[str, float]]

    def formula(self, action: str) -> Expression:
        name, gain = self.outputs[action]
        return parse(f"{gain!r}*{name}*abs({name})")


TEXT = '{"clearloop": 1, "kind": "power", "outputs": {"force": ["theta", 20.0]}}'


def test_a_kind_from_outside_is_read_run_and_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearloop.controllers.kinds.KINDS", dict(KINDS))
    monkeypatch.setattr("clearloop.controllers.file.KINDS", dict(KINDS))
    register(Power)
    controller = from_json(TEXT).for_task(CARTPOLE)
    assert from_json(to_json(controller)) == controller
    twin = Equation(outputs={"force": "20*theta*abs(theta)"}).for_task(CARTPOLE)
    assert list(controller.words()) == list(twin.words())
    assert export(controller, to="c") == export(twin, to="c")
    ours, theirs = (encode([one], CARTPOLE, history=1) for one in (controller, twin))
    assert (ours.code == theirs.code).all()
    with pytest.raises(ClearloopError, match=r"outputs.force: 'thet' is not a state or an action"):
        from_json(TEXT.replace("theta", "thet")).for_task(CARTPOLE)


def test_two_kinds_cannot_have_one_name() -> None:
    class Other(Equation):
        pass

    with pytest.raises(ClearloopError, match="two kinds of controllers with the name 'equation'"):
        register(Other)
