"""Figures of trajectories, and how they are saved."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Linear
from clearloop.errors import ClearloopError
from clearloop.evaluation import SetpointChange, Trajectory, simulate
from clearloop.figures.style import save_figure
from clearloop.figures.trajectories import draw_trajectories
from clearloop.task import Task
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.evaluation.test_rollouts import GAINS
from tests.plants.mixer import MIXER, TEXT


def trajectory(kind: str) -> Trajectory:
    change = SetpointChange("rho", 0.5, 10)
    return simulate(KINDS[kind], CARTPOLE, start={"theta": 0.2}, setpoints=[change], steps=30)


def lines(panel: Any) -> list[list[float]]:
    return [np.asarray(line.get_ydata()).tolist() for line in panel.get_lines()]


def test_a_panel_for_each_state_and_action_with_setpoints_and_limits() -> None:
    drawn = trajectory("pid")
    panels = draw_trajectories({"pid": drawn}).axes
    labels = ["theta\n(rad)", "theta_dot\n(rad/s)", "rho\n(m)", "rho_dot\n(m/s)", "force\n(N)"]
    assert [panel.get_ylabel() for panel in panels] == labels
    assert lines(panels[0]) == [drawn.states[0, :, 0].tolist()]
    assert lines(panels[2]) == [drawn.states[0, :, 2].tolist(), drawn.setpoints[:, 2].tolist()]
    assert lines(panels[4]) == [drawn.actions[0, :, 0].tolist(), [-10, -10], [10, 10]]
    assert panels[0].get_legend() is None
    assert panels[-1].get_xlabel() == "time (s)"


def test_several_are_told_apart_by_a_legend() -> None:
    named = {f"controller {number}": trajectory(kind) for number, kind in enumerate([*KINDS, "pid"])}
    panels = draw_trajectories(named).axes
    legend = panels[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(named)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_figure_gives_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_figure(
            draw_trajectories({"a": trajectory("pid"), "b": trajectory("linear")}),
            tmp_path / f"{name}.{suffix}",
        )
    content = (tmp_path / f"one.{suffix}").read_bytes()
    assert content == (tmp_path / f"two.{suffix}").read_bytes()
    assert len(content) > 10_000


def test_names_and_units_are_never_taken_for_mathematics(tmp_path: Path) -> None:
    task = Task.from_toml(TEXT.replace('unit = "°C"', 'unit = "$x^$ \\\\frac"').replace("mixer", "$^$"))
    one = simulate(GAINS, task, steps=3)
    save_figure(draw_trajectories({"$\\frac$": one, "$^$": one}), tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 10_000


def test_letters_of_any_script_are_drawn_without_complaint(tmp_path: Path) -> None:
    table = json.dumps(tomllib.loads(TEXT), ensure_ascii=False).replace("heat", "温度").replace("°C", "度")
    controller = Linear(gains={"burner": {"温度": -0.5}, "inlet": {"level": 0.1}})
    drawn = simulate(controller, Task.from_dict(json.loads(table)), steps=3)
    save_figure(draw_trajectories({"控制器": drawn}), tmp_path / "x.png")
    save_figure(draw_trajectories({"控制器": drawn}), tmp_path / "x.svg")


def test_only_formats_that_are_known(tmp_path: Path) -> None:
    figure = draw_trajectories({"mixer": simulate(GAINS, MIXER, steps=3)})
    for name in ("x.pdf", "x", ".png"):
        with pytest.raises(ClearloopError, match=r"expected a name that ends in .png or .svg"):
            save_figure(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
