"""From the first move to a controller that balances."""

from pathlib import Path

import numpy as np

from clearloop.data import Batch
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from tests.studio.page.tab import Opener, Tab, learn

TEN_SECONDS = 400  # transitions of the cart-pole


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


def test_ten_seconds_of_play_are_a_log_to_learn_from(make_tab: Opener, tmp_path: Path) -> None:
    tab = make_tab()
    page = tab.page
    page.get_by_role("button", name="Real time").first.click()
    page.keyboard.press("r")
    play(tab, TEN_SECONDS)
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
    tab.until(lambda: page.input_value("#batch") == tab.frame["recording"]["saved"])
    learn(tab, "quick", "lqr")
    tab.until(lambda: status(tab) not in (None, "running"))
    assert status(tab) == "finished", page.locator(".progress").inner_text()


def test_from_a_log_to_a_controller_that_balances(make_tab: Opener, tmp_path: Path) -> None:
    tab = make_tab("#learn")
    page = tab.page
    bring(tab, tmp_path, transitions=2000)
    learn(tab, "quick", "lqr")
    tab.until(lambda: status(tab) not in (None, "running"))
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

    page.keyboard.press("5")
    with page.expect_popup() as popup:
        page.get_by_role("link", name="Open the report").first.click()
    popup.value.locator("h1").wait_for()
    assert popup.value.locator("h1").inner_text().startswith("The best robust controller")


def bring(tab: Tab, folder: Path, *, transitions: int) -> None:
    """Choose a log of random forces as what to learn from."""
    log = folder / f"made here {transitions}.csv"
    make_batch(Task.load("cartpole"), rng=np.random.default_rng(1), size=transitions).save(log)
    tab.page.set_input_files("#learn input[type=file]", log)
    tab.until(lambda: tab.page.input_value("#batch") == f"made-here-{transitions}")


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


def test_a_log_can_be_brought_and_a_run_stopped(make_tab: Opener, tmp_path: Path) -> None:
    tab = make_tab("#learn")
    bring(tab, tmp_path, transitions=1000)
    learn(tab, "quick", "gprl")
    tab.until(lambda: status(tab) == "running")
    tab.page.get_by_role("button", name="Stop", exact=True).click()
    tab.until(lambda: status(tab) == "stopped")
