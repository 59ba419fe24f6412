"""The sheet of a controller of a run: complete, safe, two pages at most, the same every time."""

import hashlib
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import typst

from clearloop.controllers import load
from clearloop.controllers.views import TIMES
from clearloop.diagnosis import Margin, Margins, Mode
from clearloop.errors import ClearloopError
from clearloop.exports import export
from clearloop.exports.comments import made_from
from clearloop.numbers import MINUS_SIGN
from clearloop.pages.card import contents, to_html, to_pdf, write_card
from clearloop.pages.report import TEMPLATES
from clearloop.pages.sections import Card, Section, _values
from clearloop.runs import Front, RunDirectory
from tests.pages.conftest import HOSTILE

FUZZY = """{"clearloop": 1, "kind": "fuzzy", "outputs": {"push": {"scale": 2.0, "alpha": 3.1, "rules": [
   {"if": {"place": {"center": 0.5, "width": 0.4}, "speed": {"center": 0.5, "width": 1.0}}, "then": -0.9},
   {"if": {"place": {"center": -0.5, "width": 0.4}, "speed": {"center": -0.5, "width": 1.0}},
    "then": 0.9}]}}}"""


def sections(card: Card) -> dict[str, Section]:
    return {section.title: section for row in card.rows for column in row for section in column}


def pages(card: Card) -> int:
    data = json.dumps(asdict(card))
    made = typst.compile((TEMPLATES / "card.typ").read_bytes(), sys_inputs={"card": data}, format="svg")
    return len(made) if isinstance(made, list) else 1


def test_it_has_all_its_parts(card: Card, finished: RunDirectory) -> None:
    found = sections(card)
    assert list(found) == [
        "What each part does", "Gains at the operating point", "The plant, by the linear model of the log",
        "Starts that fail", "Outside the log", "Guards and safe values", "Small deviations",
        "Noise, delay and gain error", "Penalty", "A course over time", "Evidence",
    ]  # fmt: skip
    entry = Front.read(finished).entries[-1]
    costs = found["Penalty"].table
    assert costs is not None
    assert entry.penalty_system is not None
    shown = [str(row[1].content).split()[0] for row in costs.rows]
    assert shown == [f"{entry.penalty_model:.2f}", f"{entry.penalty_system:.2f}"]
    margins = found["Small deviations"].table
    assert margins is not None
    assert margins.header == ("", "linear model of the log", "plant at rest")
    assert "gain margin, up" in [row[0].content for row in margins.rows]


def test_gains_stand_beside_those_of_lqr_with_its_usual_weights(card: Card, file: Path) -> None:
    """The last controller of the run is LQR's with weights that were tried on the models: the signs agree."""
    assert load(file).name
    table = sections(card)["Gains at the operating point"].table
    assert table is not None
    assert table.header == ("", "this", "LQR")
    for row in table.rows:
        assert str(row[1].content)[0] == str(row[2].content)[0] == MINUS_SIGN


def test_the_hashes_are_those_of_the_files(card: Card, file: Path, finished: RunDirectory) -> None:
    table = sections(card)["Evidence"].table
    assert table is not None
    digests = {str(row[1].content): row[2].content for row in table.rows}
    assert digests[file.name] == hashlib.sha256(file.read_bytes()).hexdigest()
    files = export(load(file), to="c", name=f"controller_{file.stem}", origin=made_from(file, finished.path))
    for name, text in files.items():
        assert digests[name] == hashlib.sha256(text.encode()).hexdigest()
    assert finished.describe()["data"]["fingerprint"] in digests.values()
    assert any(text.startswith(f"begun {finished.describe()['begun']}, python ") for text in digests)


def test_what_users_wrote_is_text_and_nothing_else(card: Card) -> None:
    page = to_html(card)
    assert HOSTILE not in page
    assert "&lt;/script&gt;&lt;img src=" in page
    assert re.findall(r'(?:src|href)="(?!data:image/svg)', page) == []


def test_hostile_names_do_not_reach_typst_as_markup(card: Card) -> None:
    evil = '#panic("x") $ * _ ` ] } \\'
    hostile = replace(card, title=evil, name=evil, lines=(evil,), kind=evil)
    assert to_pdf(hostile).startswith(b"%PDF")


def test_it_is_two_pages_at_most_and_the_same_every_time(
    card: Card, file: Path, finished: RunDirectory
) -> None:
    assert pages(card) <= 2
    again = contents(file, finished)
    assert to_pdf(again) == to_pdf(card)
    assert to_html(again) == to_html(card)


def test_rules_are_drawn(finished: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(FUZZY)
    made = contents(tmp_path / "rules.json", finished)
    assert sections(made)["The rules"].figure.lstrip().startswith("<?xml")
    assert len(made.equations) == 2
    assert pages(made) <= 2


def test_without_a_plant_it_says_so(finished: RunDirectory, file: Path, tmp_path: Path) -> None:
    bare = tmp_path / "run"
    bare.mkdir()
    for name in ("surrogate", "batch.parquet"):
        (bare / name).symlink_to(finished.path / name)
    description = finished.describe()
    del description["task"]["plant"]
    doubts = [{"code": "x", "message": "the log is short"}]
    RunDirectory(bare).write_json("run.json", description | {"doubts": doubts})
    found = sections(contents(file, RunDirectory(bare)))
    costs = found["Penalty"].table
    assert costs is not None
    assert costs.rows[1][1].content == "not tested on a plant"
    assert found["Learned with --force: this data cannot support a controller"].lines == (
        "The log is short.",
    )


def test_what_remembers_too_much_has_no_eigenvalues(
    finished: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearloop.evaluation.linearisation.MOST_MEMORY", 100)
    text = """{"clearloop": 1, "kind": "equation", "outputs": {"push": "-place - 0.1*speed[t-90]"}}"""
    (tmp_path / "old.json").write_text(text)
    found = sections(contents(tmp_path / "old.json", finished))
    assert found["Small deviations"].lines == (
        "No eigenvalues and margins: the controller remembers too many values.",
    )


def test_a_planner_has_no_card(finished: RunDirectory, tmp_path: Path) -> None:
    text = """{"clearloop": 1, "kind": "planner", "run": "..", "outputs": ["push"], "horizon": 6, "hold": 2,
        "particles": 8, "rounds": 2, "members": 1, "seed": 0}"""
    (tmp_path / "planner.json").write_text(text)
    with pytest.raises(
        ClearloopError, match=r"planner\.json: a planner searches for a new plan at every step"
    ):
        contents(tmp_path / "planner.json", finished)


def test_other_endings_are_refused(card: Card, tmp_path: Path) -> None:
    with pytest.raises(ClearloopError, match=r"expected a name that ends in \.html or \.pdf"):
        write_card(card, tmp_path / "card.doc")
    write_card(card, tmp_path / "card.pdf")
    assert (tmp_path / "card.pdf").read_bytes() == to_pdf(card)


def test_margins_are_told_in_their_units() -> None:
    margin = Margin("push", 4.0, 0.25, 75.5, 0.26)
    values = _values(Margins((Mode.of(0.5, 0.1),), (margin,)), 0.1)
    assert values["gain margin, up"] == f"{TIMES} 4"
    assert values["gain margin, down"] == f"{TIMES} 0.25"
    assert values["phase margin"] == "75.5°"
    assert values["delay margin"] == "0.26 s (2.6 steps)"
    assert values["time constant"] == "0.1443 s"
    assert values["least damping"] == "no oscillation"
    unlimited = _values(Margins((Mode.of(1.1, 0.1),), (Margin("push", None, None, None, None),)), 0.1)
    assert {unlimited[name] for name in unlimited if "margin" in name} == {"any"}
    assert unlimited["time constant"] == "grows in 1.05 s"
