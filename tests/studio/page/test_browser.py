"""From the first move to a controller that balances."""

from pathlib import Path

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from tests.studio.page.tab import SHORTEST, Opener, Tab, learn


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough for a controller, and little enough for a test."""
    file = tmp_path_factory.mktemp("logs") / "made here.csv"
    make_batch(Task.load("cartpole"), rng=np.random.default_rng(1), size=1000).save(file)
    return file


def play(tab: Tab, transitions: int) -> None:
    """To and fro, until so many are recorded."""

    def enough() -> bool:
        for key in ("ArrowRight", "ArrowLeft"):
            tab.page.keyboard.down(key)
            tab.page.wait_for_timeout(130)
            tab.page.keyboard.up(key)
        return int(tab.frame["recording"]["rows"]) >= transitions

    tab.until(enough)


def status(tab: Tab) -> str | None:
    return tab.page.locator(".progress").get_attribute("data-status")


def test_from_the_first_move_to_a_controller_that_balances(
    make_tab: Opener, log: Path, tmp_path: Path
) -> None:
    tab = make_tab()
    page = tab.page
    page.get_by_role("button", name="Real time").first.click()
    page.keyboard.press("r")
    play(tab, 150)
    assert page.locator(".record").inner_text() == "Stop recording"
    assert {message["action"]["force"] for message in tab.sent if message["do"] == "hand"} == {-1, 0, 1}
    page.keyboard.press("r")

    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "played.csv")
    batch = Batch.load(tmp_path / "played.csv", Task.load("cartpole"))
    assert f"{len(batch):,} transition" in page.locator(".recorder").inner_text()

    page.get_by_role("button", name="Learn from this").click()
    assert tab.opened() == ["learn"]
    played = page.input_value("#batch")
    assert played == tab.frame["recording"]["saved"]
    learn(tab, "quick", "gprl")
    tab.until(lambda: status(tab) == "running")
    page.get_by_role("button", name="Stop", exact=True).click()
    tab.until(lambda: status(tab) in ("stopped", "failed"))

    page.set_input_files("input[type=file]", log)
    tab.until(lambda: page.input_value("#batch") == "made-here")
    learn(tab, SHORTEST)
    tab.until(lambda: status(tab) not in ("running", "stopped"))
    assert status(tab) == "finished", page.locator(".progress").inner_text()

    point = page.locator(".point.pick")
    point.hover()
    assert "theta" in page.locator(".front .hint").inner_text()
    point.click()
    assert tab.opened() == ["watch"]
    tab.until_frame(lambda frame: bool(frame["sides"][0]["terms"]))
    assert tab.sent[-1]["do"] == "restart"
    tab.until(lambda: tab.side["up"] > 4 and not tab.side["failed"])
    pushed = push_paused(tab)
    assert abs(pushed) > 0.1
    episode, up = tab.frame["episode"], tab.side["up"]
    page.keyboard.press(" ")
    tab.until(lambda: tab.side["up"] > up + 2 or tab.frame["episode"] != episode)
    assert tab.frame["episode"] == episode
    assert not tab.side["failed"]

    page.keyboard.press("4")
    with page.expect_popup() as popup:
        page.get_by_role("link", name="Open the report").first.click()
    popup.value.locator("h1").wait_for()
    assert popup.value.locator("h1").inner_text().startswith("The best controller")


def push_paused(tab: Tab) -> float:
    """How much faster the pole turns for a click to the left of it, while time stands still."""
    tab.page.keyboard.press(" ")
    tab.until_frame(lambda frame: bool(frame["paused"]))
    before = float(tab.side["state"]["theta_dot"])
    canvas = tab.page.locator("#watch .scene canvas").first
    canvas.click(position={"x": 20, "y": 200})
    tab.until(lambda: tab.side["state"]["theta_dot"] != before)
    assert tab.sent[-1] == {"do": "push", "state": None, "size": 0.5}
    return float(tab.side["state"]["theta_dot"]) - before
