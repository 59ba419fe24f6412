"""What objects show in a notebook: as HTML, as figures, and a progress bar while they are learned."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clearloop as cl
from clearloop.diagnosis import diagnose
from clearloop.errors import ClearloopError
from clearloop.methods import Result
from clearloop.registry import METHODS
from clearloop.surrogate.steps import BEST
from tests.controllers.kinds import TEXTS
from tests.runs.guessing import PUSHER, Guess, linear_model

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def task() -> cl.Task:
    text = PUSHER.replace('place = { unit = "m" }', 'place = { unit = "m", setpoint = 0.5 }', 1)
    return cl.Task.from_toml(text)


@pytest.fixture(scope="module")
def batch(task: cl.Task) -> cl.Batch:
    return cl.make_batch(task, size=300, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def surrogate(task: cl.Task, batch: cl.Batch) -> cl.Surrogate:
    return linear_model(task, batch, BEST, 0)


@pytest.fixture(scope="module")
def result(task: cl.Task, batch: cl.Batch, surrogate: cl.Surrogate) -> Result:
    rng = np.random.default_rng(0)
    return cl.learn(task, batch.to_frame(), Guess(), rng=rng, budget=100_000, surrogate=surrogate)


class Nesting(HTMLParser):
    """Every tag is closed, in the order in which tags must be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def is_well_formed(html: str) -> bool:
    parser = Nesting()
    parser.feed(html)
    parser.close()
    return not parser.open


def curve(panel: Any, number: int = 0) -> tuple[Any, Any]:
    x, y = panel.lines[number].get_data()
    return np.asarray(x), np.asarray(y)


def test_a_task_shows_its_tables_and_its_reward(task: cl.Task) -> None:
    html = task._repr_html_()
    assert is_well_formed(html)
    assert "<td" in html
    assert "abs(place) &lt; 0.2" in html
    figure = task.plot(ranges={"place": (-4, 4)})
    (panel,) = figure.axes  # the reward reads the place alone
    x, y = curve(panel)
    assert y[0] == y[-1] == -1
    assert y[np.argmin(np.abs(x))] == 0
    assert panel.get_xlabel() == "place (m)"


def test_a_task_whose_reward_is_a_column_says_that_there_is_nothing_to_draw() -> None:
    text = PUSHER[: PUSHER.index("cases")] + 'column = "reward"\n' + PUSHER[PUSHER.index("[starts]") :]
    learned = cl.Task.from_toml(text)
    assert "learned from column reward" in learned._repr_html_()
    with pytest.raises(ClearloopError, match="is a log column"):
        learned.plot()


def test_a_batch_shows_its_columns(batch: cl.Batch) -> None:
    assert is_well_formed(batch._repr_html_())
    assert f"{batch.states[:, 0].max():.4g}" in batch._repr_html_()
    figure = batch.plot(episodes=[0, 1])
    first = figure.axes[0]
    rows = np.flatnonzero(batch.episodes <= 1)
    drawn = np.concatenate([curve(first, 0)[1], curve(first, 1)[1]])
    assert np.array_equal(drawn, batch.states[rows, 0])
    with pytest.raises(ClearloopError, match="there is no episode 999"):
        batch.plot(episodes=[999])


def test_a_model_shows_how_far_its_members_agree(surrogate: cl.Surrogate, batch: cl.Batch) -> None:
    assert is_well_formed(surrogate._repr_html_())
    assert len(surrogate.plot().axes) == 3
    assert surrogate.plot(batch=batch).axes


def test_a_front_shows_each_controller_and_its_promise(result: Result) -> None:
    html = result._repr_html_()
    assert is_well_formed(html)
    assert html.count("<math") >= len(result.points)
    axes = result.plot().axes[0]
    assert curve(axes)[1].tolist() == [point.model.penalty for point in result.points]


@pytest.mark.parametrize("kind", TEXTS)
def test_every_kind_of_controller_shows_its_law(kind: str) -> None:
    from clearloop.controllers import from_json

    controller = from_json(TEXTS[kind])
    assert is_well_formed(controller._repr_html_())
    if not controller.plans:
        panels = controller.plot().axes
        assert all(np.isfinite(curve(panel)[1]).all() for panel in panels if panel.get_visible())


def test_a_controller_is_drawn_to_where_its_limits_are() -> None:
    controller = cl.load("examples/published/lqr.json").for_task(cl.Task.load("cartpole"))
    panel = controller.plot().axes[0]
    _, y = curve(panel)
    assert (y[0], y[-1]) == (-10, 10)
    assert panel.get_ylabel() == "force\n(N)"


def test_a_diagnosis_and_a_trajectory_are_drawn(
    task: cl.Task, batch: cl.Batch, surrogate: cl.Surrogate, result: Result
) -> None:
    rng = np.random.default_rng(0)
    found = diagnose(result.best, task, batch=batch, surrogate=surrogate, rng=rng)
    assert is_well_formed(found._repr_html_())
    assert len(found.plot().axes) == 2
    assert len(cl.simulate(result.best, task).plot().axes) == 3


def test_names_from_files_stay_text() -> None:
    controller = cl.load(Path("examples/published/gprl.json")).model_copy(update={"name": HOSTILE})
    assert "<script" not in controller._repr_html_()
    assert "&lt;script&gt;" in controller._repr_html_()


def test_a_notebook_shows_progress(
    task: cl.Task, batch: cl.Batch, surrogate: cl.Surrogate, monkeypatch: pytest.MonkeyPatch
) -> None:
    import IPython
    import IPython.display

    shown: list[str] = []
    monkeypatch.setattr(IPython, "get_ipython", type("Shell", (), {"kernel": None}))
    monkeypatch.setattr(IPython.display, "display", lambda html, **_: shown.append(html.data))
    monkeypatch.setitem(METHODS, "guess", Guess)
    cl.learn(task, batch, Guess(), rng=np.random.default_rng(0), budget=50_000, surrogate=surrogate)
    assert shown[0].startswith('<progress max="1" value="0"')
    assert 'value="1.000"' in shown[-1]
    assert "best" in shown[-1]
