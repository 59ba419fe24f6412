"""The formula of each kind, in pieces that come to the whole."""

import pytest
import typst

from clearloop.controllers import Equation, Linear, from_json
from tests.controllers.kinds import CARTPOLE, KINDS


def test_pieces_of_a_sum_are_its_terms() -> None:
    (pieces,) = Equation(outputs={"force": "2*theta - (rho + 1)*4 + -rho_dot"}).equations()
    assert [piece.text for piece in pieces] == ["force =", "2*theta", "- (rho + 1)*4", "+ -rho_dot"]
    assert pieces[3].latex == r"{} + \left(-\dot{\rho}\right)"


def test_gains_are_a_sum_too() -> None:
    pieces, other = Linear(gains={"a": {"x": 1.0, "y": -2.5}, "b": {"x": 3.0}}).equations()
    assert " ".join(piece.text for piece in pieces) == "a = x - 2.5*y"
    assert " ".join(piece.text for piece in other) == "b = 3*x"


def test_gains_may_be_many_and_nothing() -> None:
    many, none = Linear(
        gains={"a": {f"x[t-{n}]": -1.5 for n in range(1, 300)}, "b": {"x": 0.0}},
    ).equations()
    assert [piece.text for piece in many[:3]] == ["a =", "-1.5*x[t-1]", "- 1.5*x[t-2]"]
    assert len(many) == 300
    assert [piece.text for piece in none] == ["b =", "0"]


def test_a_pid_is_written_in_seconds() -> None:
    (pieces,) = KINDS["pid"].for_task(CARTPOLE).equations()
    assert [piece.text for piece in pieces[:4]] == [
        "force =", "- 81.51 e(theta)", "- 57.71 integral of e(theta)", "- 28.78 rate of e(theta)",
    ]  # fmt: skip


def test_a_bias_is_the_last_piece() -> None:
    text = """{"clearloop": 1, "kind": "pid", "outputs": {"force": {"bias": -1.5, "loops": [
        {"input": "rho", "kp": -4}]}}}"""
    (pieces,) = from_json(text).equations()
    assert [piece.text for piece in pieces] == ["force =", "- 4 e(rho)", "- 1.5"]


@pytest.mark.parametrize("kind", KINDS)
def test_typst_takes_the_pieces_of_every_kind(kind: str) -> None:
    found = KINDS[kind].for_task(CARTPOLE).equations()
    assert bool(found) == KINDS[kind].readable
    for pieces in found:
        for piece in pieces:
            assert typst.compile(f"$ {piece.typst} $".encode(), format="svg")
