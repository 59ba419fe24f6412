"""For every kind of visitor: with keys only, with a phone, with nothing yet, with bad luck."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.studio.page.tab import SHORTEST, TABS, Opener, learn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

HOSTILE = '<img src="//x.org" onerror="throw 1">'


def test_the_keyboard_goes_everywhere(make_tab: Opener) -> None:
    tab = make_tab()
    page = tab.page
    for number, name in ((2, "log"), (3, "learn"), (4, "watch"), (5, "runs"), (1, "play")):
        page.keyboard.press(str(number))
        tab.until(lambda name=name: tab.opened() == [name])  # type: ignore[misc]
        assert page.url.split("#")[1].split("?")[0] == name
        assert page.locator("nav a[aria-current]").inner_text().endswith(name.capitalize())
    for name in TABS:
        page.locator(f'nav a[href="#{name}"]').focus()
        page.keyboard.press("Enter")
        tab.until(lambda name=name: tab.opened() == [name])  # type: ignore[misc]
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("4")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert tab.opened() == ["runs"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hangs_over_the_edge_of_a_phone(make_tab: Opener, scheme: str, tmp_path: Path) -> None:
    tab = make_tab(viewport={"width": 360, "height": 740}, has_touch=True, color_scheme=scheme)
    for name in TABS:
        tab.page.goto(f"{tab.page.url.split('#')[0]}#{name}")
        tab.page.wait_for_timeout(200)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
        picture = tab.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        assert int.from_bytes(picture[16:20]) == 360
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", paper)[0]) > 128) == (scheme == "light")


def test_words_of_others_stay_words(make_tab: Opener) -> None:
    tab = make_tab()
    entry = {"controller": "001", "complexity": 3, "penalty_model": 1.0, "penalty_system": None, "pick": True}
    words = dict.fromkeys(("name", "task", "when", "headline"), HOSTILE)
    front = [{**entry, "method": HOSTILE, "formula": HOSTILE}]
    run = {**words, "status": "finished", "report": None, "front": front}
    tab.page.route("**/api/runs", lambda route: route.fulfill(json=[run]))
    tab.page.keyboard.press("5")
    tab.page.locator(".run").wait_for()
    for details in tab.page.locator("#runs summary").all():
        details.click()
    assert tab.page.locator(".run img").count() == 0
    assert HOSTILE in tab.page.locator(".run code").inner_text()
    assert HOSTILE[:20] in tab.page.locator(".run").get_by_label("Controller").inner_text()


def test_a_folder_without_runs_says_what_to_do(make_tab: Opener) -> None:
    tab = make_tab()
    tab.page.route("**/api/runs", lambda route: route.fulfill(json=[]))
    tab.page.route("**/api/batches", lambda route: route.fulfill(json=[]))
    tab.page.route("**/api/controllers*", lambda route: route.fulfill(json=[]))
    for number in "354":
        tab.page.keyboard.press(number)
        tab.page.locator(".empty").locator("visible=true").wait_for()
        tab.page.locator(".empty button").locator("visible=true").click()
        tab.page.locator({"3": "#play", "5": "#play", "4": "#learn"}[number]).wait_for()
        assert len(tab.opened()) == 1


def test_a_task_without_a_plant_can_be_learned_from_a_log(browser: "Browser", address: str) -> None:
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    task = {"name": "boiler", "title": "Boiler", "playable": False}
    methods, targets = [{"name": "gprl", "title": "GPRL"}], [{"name": "st", "title": "Structured Text"}]
    state = {
        "version": "1",
        "tasks": [task],
        "default_task": "boiler",
        "methods": methods,
        "targets": targets,
    }
    page.route("**/api/state", lambda route: route.fulfill(json=state))
    page.goto(address)
    for number in "14":
        page.keyboard.press(number)
        page.get_by_text("has no plant").locator("visible=true").wait_for()
        page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Learn from a log").click()
    page.get_by_text("no plant to record one from").locator("visible=true").wait_for()
    assert page.locator("#batch option").count() == 0
    assert not page.get_by_role("button", name="Play and record").is_visible()
    start = page.get_by_role("button", name="Learn", exact=True)
    assert start.is_disabled()
    logged = {"name": "may", "task": "boiler", "rows": 2, "episodes": 1, "when": ""}
    page.route("**/api/batches", lambda route: route.fulfill(json=[logged]))
    page.keyboard.press("1")
    page.keyboard.press("3")
    page.locator("#batch option").wait_for(state="attached")
    assert page.input_value("#batch") == "may"
    assert start.is_enabled()
    page.close()
    assert complaints == []


def test_a_refusal_is_one_line_that_goes_away(make_tab: Opener, tmp_path: Path) -> None:
    tab = make_tab("#learn")
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    tab.page.set_input_files("#learn input[type=file]", tmp_path / "odd.csv")
    notice = tab.page.locator(".notice")
    notice.wait_for()
    assert "odd.csv" in notice.inner_text()
    assert "\n" not in notice.locator("span").inner_text()
    notice.get_by_role("button", name="Dismiss").click()
    assert notice.count() == 0
    assert [text for text in tab.complaints if "400" not in text] == []  # the browser's own word for it
    tab.complaints.clear()


def test_a_run_that_was_refused_can_be_insisted_on(make_tab: Opener) -> None:
    tab = make_tab("#learn")
    asked: list[dict[str, Any]] = []
    reason = "log.csv cannot support a controller: the action never varies independently of theta"

    def begin(route: "Route") -> None:
        asked.append(route.request.post_data_json or {})
        route.fulfill(json={"run": "r"})

    tab.page.route("**/api/learn", begin)
    tab.page.route(
        "**/api/runs/r/progress",
        lambda route: route.fulfill(json={"status": "failed", "share": None, "line": reason, "front": []}),
    )
    learn(tab, SHORTEST)
    tab.page.locator(".refusal").wait_for()
    assert tab.page.locator(".refusal").inner_text() == reason
    tab.page.get_by_role("button", name="Learn anyway").click()
    tab.until(lambda: len(asked) == 2)
    assert [wish.get("force", False) for wish in asked] == [False, True]
