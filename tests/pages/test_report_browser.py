"""A walk through the report in a browser that has no network."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clearloop.runs import Front, RunDirectory
from tests.pages.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: "Browser", page: Path) -> "Iterator[Page]":
    """The report, opened from the disk; any complaint or outside request fails the test."""
    context = browser.new_context(
        offline=True, reduced_motion="reduce", viewport={"width": 1200, "height": 900}
    )
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: complaints.append(request.url) if _outside(request.url) else None)
    tab.goto(page.as_uri())
    yield tab
    context.close()
    assert complaints == []


def _outside(address: str) -> bool:
    return not address.startswith(("file:", "data:"))


def opened(tab: "Page") -> list[str]:
    found: list[str] = tab.eval_on_selector_all(
        ".controller", "all => all.filter(one => one.offsetParent).map(one => one.id.slice(1))"
    )
    return found


def test_the_pick_is_open_at_first(tab: "Page", finished: RunDirectory) -> None:
    front = Front.read(finished)
    assert opened(tab) == [front.entries[front.pick].controller]
    assert tab.locator("h1").inner_text().startswith("The best robust controller")


def test_a_click_opens_a_controller_and_hovering_names_it(tab: "Page", finished: RunDirectory) -> None:
    for entry in Front.read(finished).entries:
        point = tab.locator(f'.point[data-id="{entry.controller}"]')
        point.hover()
        assert tab.locator("#hint").inner_text().startswith(f"{entry.controller}: {entry.method}")
        point.click()
        assert opened(tab) == [entry.controller]
        assert point.get_attribute("aria-current") == "true"


def test_the_keyboard_goes_through_the_front(tab: "Page", finished: RunDirectory) -> None:
    names = [entry.controller for entry in Front.read(finished).entries]
    first = tab.locator(f'.point[data-id="{names[0]}"]')
    first.focus()
    tab.keyboard.press("Enter")
    assert opened(tab) == [names[0]]
    for name in (*names[1:], names[0]):
        tab.keyboard.press("ArrowRight")
        assert opened(tab) == [name]
    tab.keyboard.press("ArrowLeft")
    assert opened(tab) == [names[-1]]


def test_an_address_opens_a_controller(tab: "Page", page: Path, finished: RunDirectory) -> None:
    name = Front.read(finished).entries[0].controller
    tab.goto(f"{page.as_uri()}#c{name}")
    tab.reload()
    assert opened(tab) == [name]


def test_nothing_hangs_over_the_edge_of_a_phone(tab: "Page") -> None:
    tab.set_viewport_size({"width": 360, "height": 740})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    size = tab.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
    assert size >= 15


def test_formulas_are_typeset(tab: "Page") -> None:
    assert tab.locator(".answer .formula span math").count() == 3  # the action, and two terms
