"""The walk without a shell: from a log that nobody has explained yet to a block for a PLC and a pack."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clearloop.task import Task
from tests.pages.accessibility import barriers
from tests.studio.drone import drone_log
from tests.studio.page.tab import SHORTEST, Opener, Tab, learn

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Route, ViewportSize

WIDE: "ViewportSize" = {"width": 1400, "height": 900}
NARROW: "ViewportSize" = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "14 drone.csv"
    file.write_text(drone_log())
    return file


def text_of(tab: Tab) -> str:
    return tab.page.input_value("#task-file")


def drafted(tab: Tab, part: str) -> None:
    tab.until(lambda: part in text_of(tab))


def sound(tab: Tab) -> None:
    """Nothing hangs over the edge, and nobody meets a serious barrier, on a desk and on a phone."""
    before = tab.page.viewport_size
    for size in (NARROW, WIDE):
        tab.page.set_viewport_size(size)
        tab.page.wait_for_timeout(100)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert barriers(tab.page) == []
    tab.page.set_viewport_size(before)  # type: ignore[arg-type]


def test_from_a_log_to_a_block_and_a_pack(make_tab: Opener, log: Path, tmp_path: Path) -> None:
    tab = make_tab("#log", viewport=WIDE)
    page = tab.page
    page.set_input_files("#log input[type=file]", log)
    page.get_by_role("heading", name="14-drone.csv: 1,600 rows, 4 columns").wait_for()

    # The draft is what init writes; what is clicked comes before it.
    drafted(tab, 'setpoint = "referencia"')
    assert page.get_by_label("Role of u_pct").input_value() == "action"
    page.get_by_label("Lower limit of u_pct").fill("-50")
    page.get_by_label("Upper limit of u_pct").fill("60")
    drafted(tab, "limits = [-50.0, 60.0]")
    page.get_by_label("Role of referencia").select_option("ignored")
    page.get_by_text("What is the goal?").wait_for()
    page.get_by_label("Role of referencia").select_option("setpoint")
    page.get_by_label("Tolerance of angulo_deg").fill("2")
    drafted(tab, "tolerance = 2.0")
    page.get_by_label("Name of the task").fill("drone")
    drafted(tab, 'name = "drone"')
    sound(tab)

    page.get_by_role("button", name="Check the log").click()
    page.get_by_text("This log is fit to learn from").wait_for()
    assert Task.from_toml(text_of(tab)).history > 2  # the check asks for more than the draft had
    page.get_by_role("button", name="Keep the task, and learn from it").click()

    tab.until(lambda: tab.opened() == ["learn"] and page.input_value("#batch") == "drone")
    assert page.input_value("#task") == "drone"
    learn(tab, SHORTEST, "lqr")
    tab.until(lambda: page.locator(".progress").get_attribute("data-status") not in (None, "running"))
    assert page.locator(".progress").get_attribute("data-status") == "finished", page.inner_text(".progress")
    sound(tab)

    page.get_by_role("button", name="Watch the pick").click()
    page.get_by_text("rows of the log, on").wait_for()
    assert page.input_value("#controller-1") == "log/law"
    tab.until_frame(lambda frame: len(frame["sides"]) == 2 and frame["sides"][0]["up"] > 0.1)
    sound(tab)

    page.get_by_role("link", name="Runs").click()
    runs = page.locator("#runs")
    runs.get_by_text("Export and pack").click()
    with page.expect_popup() as popup:
        runs.get_by_role("link", name="Open the report").click()
    popup.value.locator("h1").wait_for()
    popup.value.close()
    runs.get_by_label("Language").select_option("st")
    with page.expect_download() as block:
        runs.get_by_role("button", name="Download the code").click()
    block.value.save_as(tmp_path / "block.st")
    assert "FUNCTION_BLOCK" in (tmp_path / "block.st").read_text()
    with page.expect_download() as pack:
        runs.get_by_role("button", name="Download the pack").click()
    pack.value.save_as(tmp_path / "pack.zip")
    runs.get_by_text("SHA-256").wait_for()
    sound(tab)
    zipfile.ZipFile(tmp_path / "pack.zip").extractall(tmp_path / "pack")
    done = subprocess.run([sys.executable, "check.py"], cwd=tmp_path / "pack", capture_output=True, text=True)
    assert done.stdout.endswith("\nyes\n"), done.stdout


def reach(tab: Tab, target: "Locator", key: str = "Tab") -> None:
    """Press a key until an element has the focus."""
    for _ in range(80):
        if target.evaluate("it => it === document.activeElement"):
            return
        tab.page.keyboard.press(key)
    pytest.fail("the keyboard does not get there")


def test_the_draft_is_made_with_keys_on_a_phone(make_tab: Opener, tmp_path: Path) -> None:
    log = tmp_path / "short.csv"
    log.write_text(drone_log(400))
    tab = make_tab(viewport=NARROW)
    page = tab.page
    page.keyboard.press("2")
    tab.until(lambda: tab.opened() == ["log"])
    reach(tab, page.locator("#log input[type=file]"))
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(log)
    drafted(tab, 'setpoint = "referencia"')
    reach(tab, page.get_by_label("Role of referencia"))
    page.keyboard.type("ignored")
    page.get_by_text("What is the goal?").wait_for()
    reach(tab, page.get_by_label("Setpoint of angulo_deg"), "Shift+Tab")
    page.keyboard.type("30")
    drafted(tab, "setpoint = 30.0")
    page.keyboard.press("Tab")
    assert page.get_by_label("Tolerance of angulo_deg").evaluate("it => it === document.activeElement")
    reach(tab, page.get_by_label("Derive the velocity of angulo_deg"))
    page.keyboard.press("Space")
    drafted(tab, "angulo_dot")
    reach(tab, page.locator("#task-file"))
    page.keyboard.press("Control+End")
    page.keyboard.type("# mine")
    page.get_by_text("You have edited this file").wait_for()
    reach(tab, page.get_by_role("button", name="Check the log"))
    page.keyboard.press("Enter")
    page.locator(".verdict").wait_for()
    assert text_of(tab).endswith("# mine")
    sound(tab)


def test_a_file_that_is_no_log_is_one_line(make_tab: Opener, tmp_path: Path) -> None:
    tab = make_tab("#log")
    (tmp_path / "odd.parquet").write_bytes(b"PAR1")
    tab.page.set_input_files("#log input[type=file]", tmp_path / "odd.parquet")
    notice = tab.page.locator(".notice span")
    notice.wait_for()
    assert notice.inner_text().startswith("odd.parquet: is damaged")
    assert not tab.page.locator(".opened").is_visible()
    tab.complaints.clear()  # the browser's own word for the refusal


def test_names_in_a_log_stay_names(make_tab: Opener, tmp_path: Path) -> None:
    hostile = '<img src=//x.org onerror="throw 1">'
    (tmp_path / "hostile.csv").write_text(
        f"time,u,{hostile}\n" + "".join(f"{t},{t % 3},{t % 5}\n" for t in range(99))
    )
    tab = make_tab("#log")
    tab.page.set_input_files("#log input[type=file]", tmp_path / "hostile.csv")
    tab.page.get_by_label(f"Role of {hostile}").wait_for()
    assert tab.page.locator("#log img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_tab_has_serious_barriers(make_tab: Opener, scheme: str) -> None:
    tab = make_tab("#watch?a=published/gprl&b=published/lqr", color_scheme=scheme, viewport=NARROW)
    tab.until_frame(lambda frame: len(frame["sides"]) == 2)
    for number, name in enumerate(("play", "log", "learn", "watch", "runs"), start=1):
        tab.page.keyboard.press(str(number))
        tab.until(lambda name=name: tab.opened() == [name])  # type: ignore[misc]
        tab.page.wait_for_timeout(200)
        assert barriers(tab.page) == [], name


def test_an_edit_while_the_task_is_drafted_keeps_nobody_waiting(make_tab: Opener, tmp_path: Path) -> None:
    """The file has a name that is too long, and would begin with a dash where it is cut."""
    log = tmp_path / f"{'a' * 30}-{'b' * 75}.csv"
    log.write_text(drone_log())
    tab = make_tab("#log")
    page, held = tab.page, list["Route"]()
    page.set_input_files("#log input[type=file]", log)
    page.get_by_role("heading", name=f"{'b' * 75}.csv: 1,600 rows").wait_for()
    drafted(tab, 'setpoint = "referencia"')

    def hold(route: "Route") -> None:
        held.append(route)

    page.route("**/api/drafts", hold)
    page.get_by_label("Tolerance of angulo_deg").fill("2")
    tab.until(lambda: bool(held))
    assert page.locator(".opened").get_attribute("aria-busy") == "true"
    page.fill("#task-file", "# mine")
    assert page.locator(".opened").get_attribute("aria-busy") is None
    held[0].continue_()
    page.wait_for_timeout(200)
    assert text_of(tab) == "# mine"
