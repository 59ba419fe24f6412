"""Maps of starts: every start is on them once, saved or lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.evaluation import evaluate
from clearloop.figures.style import RED, save_figure
from clearloop.figures.trajectories import Outcomes, draw_start_maps
from tests.controllers.kinds import CARTPOLE, KINDS

STARTS = CARTPOLE.scoring_starts(64)


def outcomes(kind: str) -> Outcomes:
    return Outcomes.of(evaluate(KINDS[kind], CARTPOLE, starts=64))


def points(axes: Any) -> tuple[Any, Any]:
    """Lost and saved."""
    lost, saved = (np.asarray(collection.get_offsets()) for collection in axes.collections)
    return lost, saved


def test_every_start_is_a_cross_or_a_point_of_the_colour_of_its_penalty() -> None:
    pid = outcomes("pid")
    axes, bar = draw_start_maps(CARTPOLE, STARTS, {"pid": pid}).axes
    lost, saved = points(axes)
    np.testing.assert_array_equal(lost, STARTS[pid.failed][:, [0, 2]])
    np.testing.assert_array_equal(saved, STARTS[~pid.failed][:, [0, 2]])
    assert 0 < len(lost) < 64
    np.testing.assert_array_equal(axes.collections[1].get_array(), pid.penalties[~pid.failed])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("theta (rad)", "rho (m)")
    assert bar.get_ylabel() == "penalty, unless it fails (no unit)"
    assert (
        axes.get_title() == f"pid\npenalty {pid.penalties.mean():.4g}, {100 * pid.failed.mean():.3g} % fail"
    )


def test_all_maps_have_the_same_colours() -> None:
    named = {kind: outcomes(kind) for kind in ("pid", "equation", "linear", "fuzzy")}
    *maps, _ = draw_start_maps(CARTPOLE, STARTS, named).axes
    ranges = {axes.collections[1].get_clim() for axes in maps}
    saved = np.concatenate([outcome.penalties[~outcome.failed] for outcome in named.values()])
    assert ranges == {(saved.min(), saved.max())}


def test_where_one_state_varies_its_penalties_are_drawn() -> None:
    line = STARTS * [1, 0, 0, 0]
    lost = np.arange(64) % 8 == 0
    (axes,) = draw_start_maps(CARTPOLE, line, {"x": Outcomes(np.arange(64.0), lost)}).axes
    assert axes.get_ylabel() == "penalty (no unit)"
    saved, crosses = axes.get_lines()
    assert np.asarray(crosses.get_ydata()).tolist() == np.arange(64.0)[lost].tolist()
    assert len(np.asarray(saved.get_ydata())) == 56
    assert crosses.get_color() == RED


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_up_to_six_and_nothing_saved_or_one_start(count: int, tmp_path: Path) -> None:
    all_lost = Outcomes(np.full(64, 30.0), np.ones(64, bool))
    names = [f"a $ long^ name of a controller, number {n}" for n in range(count)]
    figure = draw_start_maps(CARTPOLE, STARTS, dict.fromkeys(names, all_lost))
    save_figure(figure, tmp_path / "starts.png")
    assert len([axes for axes in figure.axes if axes.collections]) == count
    one = Outcomes(np.ones(1), np.zeros(1, bool))
    save_figure(draw_start_maps(CARTPOLE, STARTS[:1], {"one": one}), tmp_path / "one.png")


def test_any_two_states_can_be_chosen() -> None:
    everywhere = np.random.default_rng(0).normal(size=(64, 4))
    pid = outcomes("pid")
    axes = draw_start_maps(CARTPOLE, everywhere, {"pid": pid}, over=("rho_dot", "theta")).axes[0]
    np.testing.assert_array_equal(points(axes)[1], everywhere[~pid.failed][:, [3, 0]])
