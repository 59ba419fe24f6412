"""A walk through the studio's page in a browser, with the real server behind it."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clearloop.data import Batch
from clearloop.plants.exploration import make_batch
from clearloop.studio.app import Studio
from clearloop.task import Task
from tests.report.browser import chromium
from tests.studio.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocket

TABS = ("play", "learn", "watch", "runs")
PATIENCE = 600_000  # ms until a test gives up; none depends on it
SHORTEST = "1000000"  # model steps, the smallest budget that the server takes
HOSTILE = '<img src="//x.org" onerror="throw 1">'


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(Studio(tmp_path_factory.mktemp("studio"))) as served:
        yield f"{served.origin}/"


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
        self.page.on("websocket", self._hear)

    def _hear(self, socket: "WebSocket") -> None:
        socket.on("framesent", lambda text: self.sent.append(json.loads(text)))
        socket.on("framereceived", lambda text: self._take(json.loads(text)))

    def _take(self, message: dict[str, Any]) -> None:
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


@pytest.fixture
def make_tab(browser: "Browser", address: str) -> "Iterator[Callable[..., Tab]]":
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


def learn(tab: Tab, budget: str, method: str = "lqr") -> None:
    tab.page.evaluate("budget => document.getElementById('budget').append(new Option(budget, budget))", budget)
    tab.page.select_option("#budget", budget)
    tab.page.select_option("#method", method)
    tab.page.get_by_role("button", name="Learn", exact=True).click()


def status(tab: Tab) -> str | None:
    return tab.page.locator(".progress").get_attribute("data-status")


def test_from_the_first_move_to_a_controller_that_balances(
    make_tab: "Callable[..., Tab]", log: Path, tmp_path: Path
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
    page.get_by_text("Open the report").first.wait_for()
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


def test_two_controllers_run_from_the_same_start(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab("#watch?a=published/gprl&b=published/gprl")
    tab.until_frame(lambda frame: len(frame["sides"]) == 2 and frame["sides"][0]["up"] > 1)
    first, second = tab.frame["sides"]
    assert first["state"] == second["state"]
    assert tab.page.locator(".doing:visible").count() == 2
    tab.page.select_option("#controller-1", "published/lqr")
    assert "b=published%2Flqr" in tab.page.url
    tab.until_frame(lambda frame: frame["sides"][1]["terms"][0]["text"].startswith("38.8"))
    tab.page.select_option("#controller-1", "")
    tab.until_frame(lambda frame: len(frame["sides"]) == 1)
    assert tab.page.locator(".doing:visible").count() == 1


def test_bars_add_up_to_the_force(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab("#watch?a=published/gprl")
    page = tab.page
    tab.until_frame(lambda frame: frame["sides"][0]["up"] > 0.5)
    page.keyboard.press(" ")
    tab.until_frame(lambda frame: bool(frame["paused"]))
    page.wait_for_timeout(300)  # until the page shows the frame in which time stopped
    numbers = [float(text.replace("−", "-").split()[0]) for text in page.locator(".terms .value").all_inner_texts()[:5]]
    assert numbers[-1] == pytest.approx(np.clip(sum(numbers[:-1]), -10, 10), abs=0.3)
    starts, ends = page.evaluate(
        "[...document.querySelectorAll('.doing.first .term .bar')].map(bar => bar.getBoundingClientRect())"
        ".reduce((all, box) => [[...all[0], box.left], [...all[1], box.right]], [[], []])"
    )
    for k in range(3):
        assert min(abs(a - b) for a in (starts[k], ends[k]) for b in (starts[k + 1], ends[k + 1])) < 1.5


def test_sensors_and_setpoints_are_the_watchers(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab("#watch?a=published/gprl")
    tab.page.get_by_label("Setpoint of rho").fill("0.9")
    tab.until_frame(lambda frame: frame["setpoint"]["rho"] == 0.9)
    tab.page.get_by_label("Sensor noise").fill("0.5")
    tab.page.get_by_label("Sensor delay").fill("2")
    tab.until(lambda: {"do": "sensors", "noise": 0.5, "delay": 2} in tab.sent)
    tab.until(lambda: tab.side["seen"]["theta"] != tab.side["state"]["theta"])
    tab.page.keyboard.press("1")
    tab.until(lambda: tab.side["seen"]["theta"] == tab.side["state"]["theta"])
    tab.until_frame(lambda frame: frame["setpoint"]["rho"] == 0)


def test_the_keyboard_goes_everywhere(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab()
    page = tab.page
    for number, name in ((2, "learn"), (3, "watch"), (4, "runs"), (1, "play")):
        page.keyboard.press(str(number))
        tab.until(lambda name=name: tab.opened() == [name])  # type: ignore[misc]
        assert page.url.split("#")[1].split("?")[0] == name
        assert page.locator("nav a[aria-current]").inner_text().endswith(name.capitalize())
    for name in TABS:
        page.locator(f'nav a[href="#{name}"]').focus()
        page.keyboard.press("Enter")
        assert tab.opened() == [name]
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("3")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert tab.opened() == ["runs"]


def test_nothing_moves_before_the_player_does(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab()
    tab.until_frame(lambda frame: bool(frame["paused"]))
    assert "begin" in tab.page.locator("#play .word").inner_text()
    at = tab.frame["t"]
    tab.page.locator("#task").focus()
    tab.page.keyboard.press("Shift")
    assert tab.frame["t"] == at
    tab.page.locator("#play").focus()
    tab.page.keyboard.down("a")
    tab.until_frame(lambda frame: frame["t"] > at + 3 and frame["sides"][0]["action"]["force"] == -10)
    tab.page.keyboard.up("a")
    tab.until(lambda: tab.side["action"]["force"] == 0)


def test_a_drag_is_a_part_of_the_force(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab()
    box = tab.page.locator("#play .scene canvas").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.page.mouse.move(*middle)
    tab.page.mouse.down()
    tab.page.mouse.move(middle[0] + 0.1 * box["width"], middle[1])
    tab.until(lambda: tab.side["action"]["force"] == pytest.approx(5, abs=0.3))
    tab.page.mouse.up()
    tab.until(lambda: tab.side["action"]["force"] == 0 or tab.side["failed"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hangs_over_the_edge_of_a_phone(
    make_tab: "Callable[..., Tab]", scheme: str, tmp_path: Path
) -> None:
    tab = make_tab(viewport={"width": 360, "height": 740}, has_touch=True, color_scheme=scheme)
    for name in TABS:
        tab.page.goto(f"{tab.page.url.split('#')[0]}#{name}")
        tab.page.wait_for_timeout(200)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
        picture = tab.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        assert int.from_bytes(picture[16:20]) == 360
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", paper)[0]) > 128) == (scheme == "light")


def test_what_rests_is_asked_to_move(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab("#watch?a=published/gprl", reduced_motion="reduce")
    tab.until_frame(lambda frame: bool(frame["paused"]))
    tab.page.get_by_role("button", name="Go on").locator("visible=true").click()
    tab.until_frame(lambda frame: frame["sides"][0]["up"] > 0.2)


@pytest.mark.parametrize("task", ["pendulum", "tank"])
def test_any_task_can_be_played_and_drawn(make_tab: "Callable[..., Tab]", task: str) -> None:
    tab = make_tab()
    tab.page.select_option("#task", task)
    action = next(iter(Task.load(task).actions))
    tab.until(lambda: action in tab.side["action"])
    tab.page.locator("#play").focus()
    tab.page.keyboard.down("ArrowRight")
    tab.until(lambda: tab.side["up"] > 0 and tab.side["action"][action] == Task.load(task).actions[action].limits[1])
    tab.page.keyboard.up("ArrowRight")


def test_words_of_others_stay_words(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab()
    run = {
        "name": HOSTILE, "status": "finished", "task": HOSTILE, "when": HOSTILE, "headline": HOSTILE, "report": None,
        "front": [{"controller": "001", "method": HOSTILE, "complexity": 3, "penalty_model": 1.0,
                   "penalty_system": None, "formula": HOSTILE, "pick": True}],
    }  # fmt: skip
    tab.page.route("**/api/runs", lambda route: route.fulfill(json=[run]))
    tab.page.keyboard.press("4")
    tab.page.locator(".run").wait_for()
    tab.page.locator("summary").click()
    assert tab.page.locator(".run img").count() == 0
    assert HOSTILE in tab.page.locator(".run code").inner_text()


def test_a_folder_without_runs_says_what_to_do(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab()
    tab.page.route("**/api/runs", lambda route: route.fulfill(json=[]))
    tab.page.route("**/api/batches", lambda route: route.fulfill(json=[]))
    tab.page.route("**/api/controllers*", lambda route: route.fulfill(json=[]))
    for number in "243":
        tab.page.keyboard.press(number)
        tab.page.locator(".empty").locator("visible=true").wait_for()
        tab.page.locator(".empty button").locator("visible=true").click()
        assert tab.opened() == [{"2": "play", "4": "play", "3": "learn"}[number]]


def test_a_refusal_is_one_line_that_goes_away(make_tab: "Callable[..., Tab]", tmp_path: Path) -> None:
    tab = make_tab("#learn")
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    tab.page.set_input_files("input[type=file]", tmp_path / "odd.csv")
    notice = tab.page.locator(".notice")
    notice.wait_for()
    assert "odd.csv" in notice.inner_text()
    assert "\n" not in notice.locator("span").inner_text()
    notice.get_by_role("button", name="Dismiss").click()
    assert notice.count() == 0
    assert [text for text in tab.complaints if "400" not in text] == []  # the browser's own word for it
    tab.complaints.clear()


def test_a_run_that_was_refused_can_be_insisted_on(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab("#learn")
    asked: list[dict[str, Any]] = []
    reason = "log.csv cannot support a controller: the action never varies independently of theta"
    tab.page.route(
        "**/api/learn", lambda route: (asked.append(route.request.post_data_json), route.fulfill(json={"run": "r"}))
    )
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


def test_a_lost_connection_comes_back_with_all_that_was_wanted(browser: "Browser", address: str) -> None:
    page = browser.new_page()
    sockets: list[Any] = []
    tab = Tab(page)

    def between(route: Any) -> None:
        server = route.connect_to_server()
        server.on_message(lambda text: (tab._take(json.loads(text)), route.send(text)))
        sockets.append(route)

    page.route_web_socket("**/live*", between)
    page.goto(f"{address}#watch?a=published/lqr&b=published/pid")
    tab.until_frame(lambda frame: len(frame["sides"]) == 2)
    sockets[0].close()
    page.get_by_text("connection lost").wait_for()
    tab.frame = {}
    tab.until_frame(lambda frame: len(frame["sides"]) == 2)
    page.get_by_text("live", exact=True).wait_for()
    page.close()


def test_movement_is_smooth_between_uneven_frames(make_tab: "Callable[..., Tab]") -> None:
    tab = make_tab()
    seen: list[float] = tab.page.evaluate("""async () => {
      const { Frames } = await import("/frames.js");
      const frames = new Frames(), seen = [];
      let next = 0, t = 0;
      for (let now = 0; now < 2000; now += 1000 / 60) {
        while (next <= now) {
          frames.push({ t, episode: 0, sides: [{ state: { x: t }, up: t }] });
          t += 1;
          next += t % 2 ? 15 : 35; // ms; 25 in the mean
        }
        seen.push(frames.at(now, 40).sides[0].state.x);
      }
      return seen;
    }""")
    steps = np.diff(seen[30:])
    assert steps.min() > 0
    assert steps.max() < 2 * steps.mean()
