"""Controllers at work, alone and side by side."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clearloop.studio import server
from tests.studio.page.tab import PATIENCE, Opener, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MINUS = "\N{MINUS SIGN}"


def test_two_controllers_run_from_the_same_start(make_tab: Opener) -> None:
    tab = make_tab("#watch?a=published/gprl&b=published/gprl")
    tab.until_frame(lambda frame: len(frame["sides"]) == 2 and frame["sides"][0]["up"] > 1)
    first, second = tab.frame["sides"]
    assert first["state"] == second["state"]
    assert tab.page.locator(".doing:visible").count() == 2
    tab.page.select_option("#controller-1", "published/lqr")
    assert "b=published%2Flqr" in tab.page.url
    tab.until_frame(lambda frame: "38.8*theta" in [term["text"] for term in frame["sides"][1]["terms"]])
    tab.page.select_option("#controller-1", "")
    tab.until_frame(lambda frame: len(frame["sides"]) == 1)
    assert tab.page.locator(".doing:visible").count() == 1


def test_somebody_can_race_a_controller(make_tab: Opener) -> None:
    tab = make_tab("#watch?a=hand&b=published/gprl")
    tab.until_frame(lambda frame: len(frame["sides"]) == 2)
    tab.page.keyboard.down("ArrowRight")
    tab.until(lambda: tab.side["action"]["force"] == 10)
    tab.page.keyboard.up("ArrowRight")
    tab.until_frame(lambda frame: frame["sides"][0]["failed"] and not frame["sides"][1]["failed"])
    assert "push" not in [message["do"] for message in tab.sent]


def test_bars_add_up_to_the_force(make_tab: Opener) -> None:
    tab = make_tab("#watch?a=published/gprl")
    page = tab.page
    tab.until_frame(lambda frame: frame["sides"][0]["up"] > 0.5)
    page.keyboard.press(" ")
    tab.until_frame(lambda frame: bool(frame["paused"]))
    page.wait_for_timeout(300)  # until the page shows the frame in which time stopped
    numbers = [
        float(text.replace(MINUS, "-").split()[0])
        for text in page.locator(".terms .value").all_inner_texts()[:5]
    ]
    assert numbers[-1] == pytest.approx(np.clip(sum(numbers[:-1]), -10, 10), abs=0.3)
    starts, ends = page.evaluate(
        "[...document.querySelectorAll('.doing.first .term .bar')].map(bar => bar.getBoundingClientRect())"
        ".reduce((all, box) => [[...all[0], box.left], [...all[1], box.right]], [[], []])"
    )
    for k in range(3):
        assert min(abs(a - b) for a in (starts[k], ends[k]) for b in (starts[k + 1], ends[k + 1])) < 1.5


def test_sensors_and_setpoints_are_the_watchers(make_tab: Opener) -> None:
    tab = make_tab("#watch?a=published/gprl")
    tab.page.get_by_label("Setpoint of rho").fill("0.9")
    tab.until_frame(lambda frame: frame["setpoint"]["rho"] == 0.9)
    tab.page.get_by_label("Sensor noise").fill("0.5")
    tab.page.get_by_label("Sensor delay").fill("2")
    tab.page.get_by_label("Gain error").fill("-0.5")
    faults = {"noise": 0.5, "delay": 2, "gain": 0.5, "load": 0}
    tab.until(lambda: {"do": "sensors", **faults} in tab.sent)
    tab.until(lambda: tab.side["seen"]["theta"] != tab.side["state"]["theta"])
    tab.page.keyboard.press("1")
    tab.until(lambda: tab.side["seen"]["theta"] == tab.side["state"]["theta"])
    tab.until_frame(lambda frame: frame["setpoint"]["rho"] == 0)


def test_what_rests_is_asked_to_move(make_tab: Opener) -> None:
    tab = make_tab("#watch?a=published/gprl", reduced_motion="reduce")
    tab.until_frame(lambda frame: bool(frame["paused"]))
    tab.page.get_by_role("button", name="Go on").locator("visible=true").click()
    tab.until_frame(lambda frame: frame["sides"][0]["up"] > 0.2)


def test_a_lost_connection_comes_back_with_all_that_was_wanted(browser: "Browser", address: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    sockets: list[Any] = []
    tab = Tab(page)

    def hear(route: Any, text: str) -> None:
        tab.hear(text)
        route.send(text)

    def between(route: Any) -> None:
        sockets.append(route)
        if len(sockets) in (2, 3):  # the server is away for a while
            route.close()
        else:
            route.connect_to_server().on_message(lambda text: hear(route, text))

    page.route_web_socket("**/live*", between)
    page.goto(f"{address}#watch?a=published/lqr&b=published/pid")
    tab.until_frame(lambda frame: len(frame["sides"]) == 2)
    sockets[0].close()
    page.get_by_text("connection lost").wait_for()
    tab.frame = {}
    tab.until_frame(lambda frame: len(frame["sides"]) == 2)
    assert len(sockets) == 4
    page.locator("#link", has_text="live").wait_for()
    page.close()


def test_the_page_shows_why_it_has_no_session_and_gets_one_later(
    browser: "Browser", address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    tab = Tab(page)
    tab.listen(address)
    with monkeypatch.context() as full:
        full.setattr(server, "MOST_SESSIONS", 0)
        page.goto(address)
        page.get_by_text("0 live sessions are open, which is the limit: close another tab").wait_for()
        page.locator("#link", has_text="refused, trying again").wait_for()
        assert not tab.frame
    tab.until_frame(lambda _: True)
    page.locator("#link", has_text="live").wait_for()
    page.close()
