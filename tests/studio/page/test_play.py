"""A hand on the plant: keys, a mouse, a thumb, a game pad."""

import numpy as np
import pytest

from clearloop.task import Task
from tests.studio.page.tab import Opener


def test_nothing_moves_before_the_player_does(make_tab: Opener) -> None:
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


def test_a_drag_is_a_part_of_the_force(make_tab: Opener) -> None:
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


def test_a_game_pads_stick_has_a_dead_zone(make_tab: Opener) -> None:
    tab = make_tab()
    hold = "at => { navigator.getGamepads = () => [null, { axes: [at, 0], buttons: [] }]; }"
    for at, force in ((-0.56, -5), (0.05, 0)):
        tab.page.evaluate(hold, at)
        tab.until(lambda force=force: tab.side["action"]["force"] == pytest.approx(force, abs=0.1))  # type: ignore[misc]


def test_a_thumb_is_enough(make_tab: Opener) -> None:
    tab = make_tab(viewport={"width": 360, "height": 740}, has_touch=True)
    right = tab.page.get_by_role("button", name="Push right")
    right.dispatch_event("pointerdown")
    tab.until(lambda: tab.side["action"]["force"] == 10)
    right.dispatch_event("pointerup")
    tab.until(lambda: tab.side["action"]["force"] == 0 or tab.side["failed"])


@pytest.mark.parametrize("task", ["pendulum", "tank"])
def test_any_task_can_be_played_and_drawn(make_tab: Opener, task: str) -> None:
    tab = make_tab()
    tab.page.select_option("#task", task)
    action = next(iter(Task.load(task).actions))
    tab.until(lambda: action in tab.side["action"])
    tab.page.locator("#play").focus()
    tab.page.keyboard.down("ArrowRight")
    tab.until(
        lambda: tab.side["up"] > 0 and tab.side["action"][action] == Task.load(task).actions[action].limits[1]
    )
    tab.page.keyboard.up("ArrowRight")


def test_movement_is_smooth_between_uneven_frames(make_tab: Opener) -> None:
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
