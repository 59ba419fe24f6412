"""The figure of fuzzy rules: each membership where it belongs, and nothing elsewhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Fuzzy
from clearloop.figures.rules import MOST_RULES, draw_rules, ranges_of
from clearloop.figures.style import save_figure
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.plants.mixer import MIXER
from tests.surrogate.models import cartpole_log


def fuzzy(**outputs: Any) -> Fuzzy:
    return Fuzzy.model_validate({"outputs": outputs})


def rule(then: float = 0.5, **features: tuple[float, float]) -> dict[str, Any]:
    return {"if": {name: {"center": c, "width": w} for name, (c, w) in features.items()}, "then": then}


def test_a_row_for_each_rule_and_a_column_for_each_feature() -> None:
    controller = KINDS["fuzzy"]
    assert isinstance(controller, Fuzzy)
    figure = draw_rules(controller, CARTPOLE)
    titles = ["theta", "theta_dot", "rho - setpoint", "rho[t-1] - setpoint", "rho_dot", "force"]
    assert len(figure.axes) == 3 * len(titles)
    assert [axes.get_title() for axes in figure.axes[: len(titles)]] == titles
    bottom = figure.axes[-len(titles) :]
    assert [axes.get_xlabel() for axes in bottom][0::5] == ["theta (rad)", "force (N)"]
    used = [[bool(axes.lines) for axes in figure.axes[6 * i : 6 * i + 5]] for i in range(3)]
    assert used == [
        [True, True, True, False, True],
        [True, True, False, True, True],
        [False, False, False, False, True],
    ]


def test_curves_peak_at_the_centre_and_fall_as_gaussians() -> None:
    (curve, *_), output = (axes.get_lines() for axes in _axes(rule(theta=(0.2, 0.1))))
    x, y = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    assert x[np.argmax(y)] == pytest.approx(0.2)
    np.testing.assert_allclose(y, np.exp(-((x - 0.2) ** 2) / 0.02), atol=1e-12)
    assert output == []


def test_the_output_is_that_of_the_rule_alone_within_the_limits() -> None:
    for then, expected in ((0.1, 10 * np.tanh(0.2)), (-50.0, -10.0)):
        bar = _axes(rule(then, theta=(0.2, 0.1)))[1].patches[0]
        assert bar.get_width() == pytest.approx(expected)
    strong = fuzzy(force={"scale": 1e5, "alpha": 2.0, "rules": [rule(theta=(0.2, 0.1))]})
    assert draw_rules(strong, CARTPOLE).axes[1].patches[0].get_width() == 10.0  # type: ignore[attr-defined]


def _axes(one: dict[str, Any]) -> list[Any]:
    return list(draw_rules(fuzzy(force={"scale": 10.0, "alpha": 2.0, "rules": [one]}), CARTPOLE).axes)


def test_ranges_are_those_of_the_log() -> None:
    batch = cartpole_log(300)
    ranges = ranges_of(CARTPOLE, batch)
    assert ranges["theta"] == (batch.states[:, 0].min(), batch.states[:, 0].max())
    assert ranges["force"] == (-10.0, 10.0)
    controller = fuzzy(force={"scale": 10.0, "alpha": 2.0, "rules": [rule(theta=(500.0, 1e6))]})
    axes = draw_rules(controller, CARTPOLE, ranges).axes[0]
    assert axes.get_xlim() == pytest.approx(ranges["theta"])


def test_several_actions_have_their_own_outputs(tmp_path: Path) -> None:
    controller = fuzzy(
        inlet={"scale": 1.0, "alpha": 1.0, "rules": [rule(level=(1.0, 1e6))]},
        burner={
            "scale": 1e6,
            "alpha": 1.0,
            "rules": [rule(heat=(1e9, 1e-6)), rule(0.5, **{"burner[t-1]": (0.0, 1.0)})],
        },
    )
    figure = draw_rules(controller, MIXER)
    save_figure(figure, tmp_path / "rules.png")
    first = figure.axes[::4]
    assert [axes.get_ylabel() for axes in first] == ["inlet,\nrule 1", "burner,\nrule 1", "burner,\nrule 2"]
    assert [axes.get_xlabel() for axes in figure.axes[3::4]] == ["inlet", "", "burner (kW)"]


def test_of_many_rules_the_first(tmp_path: Path) -> None:
    rules = [rule(theta=(0.1 * n, 0.2)) for n in range(MOST_RULES + 5)]
    figure = draw_rules(fuzzy(force={"scale": 10.0, "alpha": 1.0, "rules": rules}), CARTPOLE)
    assert len(figure.axes) == 2 * MOST_RULES
    assert figure.get_suptitle() == "The first 30 of 35 rules"
    save_figure(figure, tmp_path / "rules.svg")
