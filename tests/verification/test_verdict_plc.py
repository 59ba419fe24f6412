"""`verify` on Structured Text: the file that was written is run, and so is its test bench."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Controller, from_json
from clearloop.errors import ClearloopError
from clearloop.exports import export
from clearloop.exports.guard import MODES
from clearloop.verification import Amount, verify
from clearloop.verification.st import Block
from tests.controllers.kinds import CARTPOLE, KINDS

BRIEF = Amount(episodes=6, length=6, after=1, tries=1)
READABLE = [name for name, controller in KINDS.items() if controller.readable]


def equation(law: str) -> Controller:
    return from_json(json.dumps({"clearloop": 1, "kind": "equation", "outputs": {"u": law}}))


def bench(folder: Path, before: str = "", after: str = "") -> Block:
    """The program, after its first cycle; the block may be changed before."""
    block = (folder / "law.st").read_text(encoding="utf-8")
    assert before in block
    program = Block(block.replace(before, after) + (folder / "law_bench.st").read_text(encoding="utf-8"))
    program.step({})
    return program


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("kind", READABLE)
def test_the_text_and_its_bench_are_equal(kind: str, precision: str, tmp_path: Path) -> None:
    controller = KINDS[kind].for_task(CARTPOLE)
    rng = np.random.default_rng(0)
    verdict = verify(
        controller, to="st", folder=tmp_path, rng=rng, name="law", precision=precision, amount=BRIEF
    )
    assert verdict.equal
    assert verdict.vectors > 100
    columns = (tmp_path / "vectors.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    block = Block((tmp_path / "law.st").read_text(encoding="utf-8"))
    names = [*(name for name in block.inputs if name != "restart"), *block.outputs]
    assert [column.replace(".", "_") for column in columns[2:]] == names
    program = bench(tmp_path)
    assert program.value("done")
    assert program.value("equal")
    assert program.value("worst") <= verdict.tolerance


@pytest.mark.parametrize("kind", ["lagging equation", "pid"])
def test_so_are_a_block_with_modes_and_its_bench(kind: str, tmp_path: Path) -> None:
    controller, rng = KINDS[kind].for_task(CARTPOLE), np.random.default_rng(0)
    verdict = verify(controller, to="st", folder=tmp_path, rng=rng, name="law", amount=BRIEF, options=MODES)
    assert verdict.equal
    assert verdict.guarded > 50
    assert bench(tmp_path).value("equal")
    assert "TRUE" in (tmp_path / "law_bench.st").read_text(encoding="utf-8")


def test_a_mode_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(controller: Controller, **words: Any) -> dict[str, str]:
        files = export(controller, **words)
        return {
            file: text.replace("was_apart := manual", "was_apart := FALSE") for file, text in files.items()
        }

    monkeypatch.setattr(import_module("clearloop.verification.verdict"), "export", wrong)
    controller = KINDS["equation"].for_task(CARTPOLE)
    found = [
        verify(
            controller, to="st", folder=tmp_path, rng=np.random.default_rng(0), amount=BRIEF, options=options
        )
        for options in ([], ["manual"])
    ]
    assert [one.equal for one in found] == [True, False]


def test_the_bench_sees_a_wrong_gain(tmp_path: Path) -> None:
    controller = KINDS["equation"].for_task(CARTPOLE)
    verify(controller, to="st", folder=tmp_path, rng=np.random.default_rng(0), name="law", amount=BRIEF)
    program = bench(tmp_path, "69.8", "69.9")
    assert not program.value("equal")
    assert program.value("worst") > 1e-6


def test_a_wrong_block_is_not_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(controller: Controller, *, to: str, name: str, precision: str, **more: Any) -> dict[str, str]:
        files = export(controller, to=to, name=name, precision=precision, **more)
        return {file: text.replace("69.8", "69.80001") for file, text in files.items()}

    monkeypatch.setattr(import_module("clearloop.verification.verdict"), "export", wrong)
    controller = KINDS["equation"].for_task(CARTPOLE)
    verdict = verify(controller, to="st", folder=tmp_path, rng=np.random.default_rng(0), amount=BRIEF)
    assert not verdict.equal


@pytest.mark.parametrize("law", ["1.5", "x", "u[t-1] + 1"])
def test_blocks_with_few_inputs_and_no_limits(law: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    assert verify(equation(law), to="st", folder=tmp_path, rng=rng, name="law", amount=BRIEF).equal
    assert bench(tmp_path).value("equal")


@pytest.mark.parametrize("kind", READABLE)
def test_plcopen_is_equal(kind: str, tmp_path: Path) -> None:
    controller, rng = KINDS[kind].for_task(CARTPOLE), np.random.default_rng(0)
    assert verify(controller, to="plcopen", folder=tmp_path, rng=rng, amount=BRIEF).equal


def test_networks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ClearloopError, match="cannot be exported to st"):
        verify(KINDS["network"], to="st", folder=tmp_path, rng=np.random.default_rng(0))
