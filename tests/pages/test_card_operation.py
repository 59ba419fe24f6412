"""What the sheet says about operation, and that its page can be read on a desk and on a phone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clearloop.controllers.views import TIMES
from clearloop.diagnosis import LoggedMargins, Margin, Margins, Mode
from clearloop.exports.safety import safe_actions
from clearloop.numbers import MINUS_SIGN
from clearloop.pages.card import to_html
from clearloop.pages.operation import cautions, guards
from clearloop.pages.sections import Card, Section, Subject, examine
from clearloop.runs import RunDirectory
from clearloop.task.tables import Check
from tests.pages.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def subject(finished: RunDirectory, file: Path) -> Subject:
    return examine(file, finished)


def warned(subject: Subject, margin: Margin, *unknown: str, pole: float = 0.5) -> list[Section]:
    """The warnings about margins that are the same in both columns."""
    margins = Margins((Mode.of(pole, 0.1),), (margin,) if pole < 1 else ())
    both = LoggedMargins(margins, "", frozenset((margin.action, name) for name in unknown))
    changed = replace(subject)
    vars(changed).update(_margins=(both, both))
    return cautions(changed)


def test_margins_below_the_usual_are_warned_of(subject: Subject) -> None:
    """The usual: 30°, a factor of 2, one and a half steps; the task's step is 0.1 s."""
    (found,) = warned(subject, Margin("push", 1.9, 0.6, 29.0, 0.14))
    assert found.title == "Warning: margins below the usual"
    assert found.lines[:4] == (
        f"By the linear model of the log: gain margin {TIMES} 1.9 up; usual is {TIMES} 2 or more.",
        f"By the linear model of the log: gain margin {TIMES} 0.6 down; usual is {TIMES} 0.5 or less.",
        "By the linear model of the log: phase margin 29°; usual is 30° or more.",
        "By the linear model of the log: delay margin 1.4 steps; usual is 1.5 steps or more.",
    )
    assert len(found.lines) == 8
    assert warned(subject, Margin("push", 2.1, 0.4, 31.0, 0.16)) == []
    assert warned(subject, Margin("push", None, None, None, None)) == []
    assert len(warned(subject, Margin("push", 1.9, 0.6, 29.0, 0.14), "phase")[0].lines) == 6
    (unstable,) = warned(subject, Margin("push", None, None, None, None), pole=1.1)
    assert unstable.lines[-1] == "On the plant at rest: unstable for small deviations."


def test_guards_and_safe_values_are_listed(subject: Subject) -> None:
    found = guards(subject)
    rest = safe_actions(subject.controller)["push"]
    assert rest == pytest.approx(0)
    assert found.lines[0].startswith("push: the safe value is 0 ")
    assert found.lines[0].endswith("the action at rest; none is given.")
    assert "A wrong but finite value of place, speed is not noticed" in found.notes[1]
    checks = {"place": Check(range=(-3, 2.5), gradient=4.0), "speed": Check(frozen=0.5)}
    safe = subject.controller.model_copy(update={"checks": checks, "safe": {"push": -1.5}})
    told = guards(replace(subject, controller=safe))
    assert f"the safe value is {MINUS_SIGN}1.5" in told.lines[0]
    assert told.lines[0].endswith("as task or controller say.")
    assert told.table is not None
    rows = [[str(cell.content) for cell in row] for row in told.table.rows]
    assert rows == [["place", f"{MINUS_SIGN}3 … 2.5 m", "4 m/s", "—"], ["speed", "—", "—", "0.5 s"]]
    assert len(told.notes) == 1


@pytest.fixture(scope="module")
def sheet(card: Card, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("card") / "card.html"
    path.write_text(to_html(card), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tab(sheet: Path) -> "Iterator[Page]":
    with chromium() as browser:
        tab = browser.new_page()
        tab.goto(sheet.as_uri())
        yield tab


# For each text outside of hashes: the words of which the letters do not stand on one line.
BROKEN = """() => {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node.parentElement.closest("style, title, .code, math, header")) continue;
        for (const word of node.data.matchAll(/[^\\s\\/-]+/g)) {
            if (word[0].length > 24 || /[<>]/.test(word[0])) continue;
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            const tops = new Set([...range.getClientRects()].map(one => Math.round(one.top)));
            if (tops.size > 1) found.push(word[0]);
        }
    }
    return found;
}"""


@pytest.mark.parametrize("width", [1400, 768, 390])
def test_no_word_is_torn_and_nothing_is_wider_than_the_page(tab: "Page", width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(BROKEN) == []
    assert tab.locator("h2", has_text="A course over time").count() == 1
    drawn = tab.locator("section", has_text="A course over time").locator("img").bounding_box()
    assert drawn is not None
    assert drawn["width"] > 200
