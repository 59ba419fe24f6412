"""What `docs/structured_text.md` shows is what is exported."""

import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from clearloop.controllers import Controller, load
from clearloop.exports.guard import OPTIONS
from clearloop.exports.targets import export
from clearloop.task import Task
from clearloop.verification import verify
from clearloop.verification.st import Block

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "structured_text.md").read_text(encoding="utf-8")


def test_the_block_of_the_page_is_the_export() -> None:
    controller = load(ROOT / "examples" / "published" / "gprl.json").for_task(Task.load("cartpole"))
    shown = re.findall(r"^```iecst\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    file = ROOT / "examples" / "published" / "gprl.json"
    origin = [f"Controller file gprl.json, SHA-256 {sha256(file.read_bytes()).hexdigest()}."]
    text = export(controller, to="st", name="gprl", without=["guard"], origin=origin)["gprl.st"]
    assert isinstance(text, str)
    assert shown.strip() == text.strip()
    assert Block(shown).step({"theta": 0.1})["force"] == 69.8 * 0.1


def test_all_options_and_their_inputs_are_on_the_page() -> None:
    controller = load(ROOT / "examples" / "published" / "pid.json").for_task(Task.load("cartpole"))
    plain = Block(text_of(controller)).inputs
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*?) \|", PAGE, re.MULTILINE))
    assert tuple(rows) == OPTIONS
    for option, words in rows.items():
        text = text_of(controller, option)
        added = [name for name in Block(text).inputs if name not in plain]
        assert all(f"`{name}`" in words for name in added if not name.startswith("rho_"))
        assert bool(added) == (words != "none")


def text_of(controller: Controller, *options: str) -> str:
    text = export(controller, to="st", options=options, without=["guard"])["controller.st"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", ["gprl", "pid"])
def test_the_table_is_what_verify_finds(name: str, precision: str, tmp_path: Path) -> None:
    controller = load(ROOT / "examples" / "published" / f"{name}.json").for_task(Task.load("cartpole"))
    rng = np.random.default_rng(0)
    found = verify(controller, to="st", folder=tmp_path, rng=rng, name=name, precision=precision)
    counts = f"{found.vectors} | {found.left_out}"
    assert f"| {name} | {precision} | {counts} | {found.difference:.2g} |" in PAGE
