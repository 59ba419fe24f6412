"""The report of a run: complete, safe, and the same every time."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from clearloop.pages.report import Axis, _again, chart, write_report
from clearloop.runs import Front, RunDirectory
from tests.pages.conftest import HOSTILE


class Links(HTMLParser):
    """What a page refers to, and what it calls its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.targets.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def read(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def test_it_carries_everything_with_it(page: Path) -> None:
    links = read(page)
    assert links.targets
    for target in links.targets:
        assert target.startswith(("#", "data:image/png;base64,"))
        if target.startswith("#"):
            assert target[1:] in links.ids
    assert len(set(links.ids)) == len(links.ids)


def test_every_controller_is_there(page: Path, finished: RunDirectory) -> None:
    ids = read(page).ids
    entries = Front.read(finished).entries
    assert len(entries) >= 2
    for entry in entries:
        assert f"c{entry.controller}" in ids


def test_what_users_wrote_is_text_and_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "&lt;/script&gt;&lt;img src=" in text
    assert read(page).tags.count("script") == 1


def test_the_same_run_gives_the_same_page(page: Path, finished: RunDirectory) -> None:
    before = page.read_bytes()
    write_report(finished)
    assert page.read_bytes() == before


def test_it_says_how_to_do_it_again(page: Path) -> None:
    text = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
    assert "--method guess --method lqr --budget 400000 --track best --seed 0" in text


def test_what_was_ignored_and_left_out_is_said(finished: RunDirectory) -> None:
    description = finished.describe()
    assert "--force" not in _again(description)["command"]
    doubted = description | {"doubts": [{"kind": "x", "message": "too short"}], "left_out": {"lqr": "why"}}
    again = _again(doubted)
    assert again["command"].endswith("--force")
    assert ("lqr was left out", "why") in again["facts"]


def test_nine_methods_look_different(finished: RunDirectory) -> None:
    front = Front.read(finished)
    entries = [replace(front.entries[0], method=str(n)) for n in range(9)]
    looks = chart(replace(front, entries=tuple(entries)))["methods"]
    assert len({(look["colour"], look["shape"]) for look in looks}) == 9


def test_points_stand_where_their_figures_are(finished: RunDirectory) -> None:
    front = Front.read(finished)
    drawn = chart(front)
    points = {point["id"]: point for point in drawn["points"]}
    for entry in front.entries:
        point = points[entry.controller]
        assert drawn["left"] <= point["x"] <= drawn["right"]
        assert drawn["top"] <= point["y"] <= drawn["bottom"]
    costs = sorted(front.entries, key=lambda entry: entry.penalty_system or 0)
    heights = [points[entry.controller]["y"] for entry in costs]
    assert heights == sorted(heights, reverse=True)  # a higher penalty stands higher
    assert sum(point["pick"] for point in drawn["points"]) == 1


def test_axes_have_a_few_round_numbers() -> None:
    for low, high in (
        (2.5, 20.0), (3, 2048), (2.6, 2.7), (1e-3, 1e4), (-2.0, 5.0), (1.0, 1.0), (0.0, 0.0), (1.2, 1.2),
        (-142.3, -140.6), (0.0, 3e-9), (-1e6, -1e6 + 1),
    ):  # fmt: skip
        scale = Axis.of([low, high], 0.0, 100.0)
        ticks = scale.ticks()
        assert 2 <= len(ticks) <= 9
        assert all(0 <= scale(tick) <= 100 for tick in ticks)
        assert ticks == sorted(set(ticks))
        assert scale(low) < 50 < scale(high) or low == high
