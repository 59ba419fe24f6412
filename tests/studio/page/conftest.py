"""The studio in a browser, with the real server behind it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from clearloop.studio.server import Studio
from tests.pages.browser import chromium
from tests.studio.page.tab import PATIENCE, Opener, Tab
from tests.studio.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(Studio(tmp_path_factory.mktemp("studio"))) as served:
        yield f"{served.origin}/"


@pytest.fixture
def make_tab(browser: "Browser", address: str) -> Iterator[Opener]:
    """Opens the studio; any complaint, or a request to another host, fails the test."""
    tabs: list[Tab] = []

    def make(path: str = "", **settings: Any) -> Tab:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | settings)
        context.set_default_timeout(PATIENCE)
        tab = Tab(context.new_page())
        tab.listen(address)
        tabs.append(tab)
        tab.page.goto(address + path)
        tab.until_frame(lambda _: True)
        return tab

    yield make
    for tab in tabs:
        tab.page.context.close()
    assert [tab.complaints for tab in tabs] == [[] for _ in tabs]
