"""The studio's page in a browser: what it complains of, and what it says and hears."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocket

TABS = ("play", "log", "learn", "watch", "runs")
PATIENCE = 600_000  # ms until a test gives up; none depends on it
SHORTEST = "1000000"  # model steps, the smallest budget that the server takes


@dataclass
class Tab:
    """A page, with all that it complained of and all that its socket said."""

    page: "Page"
    complaints: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    frame: dict[str, Any] = field(default_factory=dict)
    """the latest"""

    def listen(self, address: str) -> None:
        def outside(url: str) -> bool:
            return not url.startswith((address, address.replace("http:", "ws:"), "data:", "blob:"))

        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda it: self.complaints.append(it.url) if outside(it.url) else None)
        self.page.on("websocket", self._follow)

    def _follow(self, socket: "WebSocket") -> None:
        socket.on("framesent", lambda text: self.sent.append(json.loads(text)))
        socket.on("framereceived", self.hear)

    def hear(self, text: str | bytes) -> None:
        message = json.loads(text)
        self.frame = message if "t" in message else self.frame

    @property
    def side(self) -> dict[str, Any]:
        side: dict[str, Any] = self.frame["sides"][0]
        return side

    def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(PATIENCE // 50):
            if holds():
                return
            self.page.wait_for_timeout(50)
        pytest.fail("it never came")

    def until_frame(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        self.until(lambda: bool(self.frame) and holds(self.frame))

    def opened(self) -> list[str]:
        return [name for name in TABS if self.page.locator(f"#{name}").is_visible()]


def learn(tab: Tab, budget: str, method: str = "lqr") -> None:
    tab.page.evaluate(
        "budget => document.getElementById('budget').append(new Option(budget, budget))", budget
    )
    tab.page.select_option("#budget", budget)
    tab.page.select_option("#method", method)
    tab.page.get_by_role("button", name="Learn", exact=True).click()


Opener = Callable[..., Tab]
"""opens the studio at an address, with settings for the browser"""
