"""The figures of the objects of the Python interface: what `task.plot()`, `result.plot()` and others draw."""

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.controllers.equation import Equation
from clearloop.data import Batch
from clearloop.diagnosis import Diagnosis
from clearloop.errors import ClearloopError
from clearloop.evaluation import Trajectory, simulate
from clearloop.expression import Expression, Variable, evaluate, variables
from clearloop.figures.model import draw_quality
from clearloop.figures.style import BLUE, COLOURS, GREY, ORANGE, RED, SETTINGS, with_unit
from clearloop.figures.trajectories import draw_trajectories
from clearloop.methods import Result
from clearloop.surrogate import Surrogate
from clearloop.surrogate.quality import assess
from clearloop.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Range = tuple[float, float]

POINTS = 201  # of a curve
STEPS = (0.25, 0.75)  # of the range of an action: the constant values that a model is shown at


@singledispatch
def draw(shown: object, **_: Any) -> "Figure":
    """Draw an object of the Python interface.

    Args:
        shown: The object. Its class decides what is drawn.

    Returns:
        A matplotlib figure.

    Raises:
        ClearloopError: The class has no figure, or an option does not fit.
    """
    raise ClearloopError(f"there is no figure of a {type(shown).__name__}")


@draw.register(Task)
def draw_task(task: Task, *, ranges: Mapping[str, _Range] | None = None) -> "Figure":
    """Draw the reward of a step that changes nothing, along each state that the reward reads.

    Args:
        task: The task; its reward must be a formula.
        ranges: The lowest and the highest value of states; the others span twice the box of starts.

    Raises:
        ClearloopError: The reward is a log column.
    """
    formula = task.reward_expression
    if formula is None:
        raise ClearloopError(f"task {task.name}: its reward is a log column, so there is no formula to draw")
    read = {variable.name for variable in variables(formula)}
    names = [name for name in task.state_names if name in read] or list(task.state_names)
    rest = {name: float(aim) if isinstance(aim, int | float) else 0.0 for name, aim in task.setpoints.items()}
    box = task.start_box

    def span(name: str) -> _Range:
        if ranges and name in ranges:
            return ranges[name]
        if box is not None and (reach := float(np.abs(box[task.state_names.index(name)]).max())) > 0:
            return -2 * reach, 2 * reach
        middle = rest.get(name, 0.0)
        return middle - max(1.0, abs(middle)), middle + max(1.0, abs(middle))

    curves = {}
    for name in names:
        x = np.linspace(*span(name), POINTS)
        curves[name] = (x, np.array([_at_rest(formula, {**rest, name: float(value)}, rest) for value in x]))
    units = {name: state.unit for name, state in task.states.items()}
    return _curves({"reward": curves}, units, ("reward",))


def _at_rest(formula: Expression, values: Mapping[str, float], aims: Mapping[str, float]) -> float:
    def read(variable: Variable) -> float:
        aim = aims.get(variable.name, 0.0)
        if variable.part == "setpoint":
            return aim
        return values.get(variable.name, 0.0) - (aim if variable.part == "error" else 0.0)

    return evaluate(formula, {variable: read(variable) for variable in variables(formula)})


@draw.register(Batch)
def draw_batch(batch: Batch, *, episodes: Sequence[int] = (0,)) -> "Figure":
    """Draw all columns of some episodes, one behind the other.

    Args:
        batch: The log.
        episodes: The numbers of the episodes.

    Raises:
        ClearloopError: There is no such episode.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if missing := [number for number in episodes if not 0 <= number < batch.episode_count]:
        raise ClearloopError(f"there is no episode {missing[0]}: the log has 0 to {batch.episode_count - 1}")
    columns = batch.columns
    names = (*columns.states, *columns.actions)
    values = np.column_stack([batch.states, batch.actions])
    parts = [np.flatnonzero(batch.episodes == number) for number in episodes]
    begins = np.cumsum([len(part) for part in parts])[:-1]
    values = np.concatenate([values[part] for part in parts])
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.5, 1.05 * len(names) + 0.8), layout="constrained")
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for number, (panel, name) in enumerate(zip(panels, names, strict=True)):
            acted = number >= len(columns.states)
            look: dict[str, Any] = {"color": RED if acted else BLUE, "lw": 1}
            for begin, part in zip((0, *begins), parts, strict=True):
                course = values[begin : begin + len(part), number]
                panel.plot(begin + np.arange(len(part)), course, drawstyle=_style(acted), **look)
            for begin in begins:
                panel.axvline(begin - 0.5, color=GREY, lw=0.8, ls=":")
            panel.set_ylabel(name, rotation=0, ha="right", va="center")
            panel.margins(x=0)
        figure.align_ylabels(panels)
        panels[-1].set_xlabel("row; dotted: an episode begins" if begins.size else "row")
    return figure


def _style(acted: bool) -> str:
    return "steps-post" if acted else "default"


@draw.register(Controller)
def draw_controller(controller: Controller, *, ranges: Mapping[str, _Range] | None = None) -> "Figure":
    """Draw the actions along each input, where this input has been constant and all others are at rest.

    Args:
        controller: The controller.
        ranges: The lowest and the highest value of inputs; the others go as far as the actions change.
    """
    names = list(dict.fromkeys(v.name for _, v in controller.variables() if v.name not in controller.actions))
    rest = {**dict.fromkeys(names, 0.0), **controller.setpoint}
    inputs = [name for name in names if name not in controller.derived] or names
    curves: dict[str, dict[str, tuple[Floats, Floats]]] = {action: {} for action in controller.actions}
    for name in inputs:
        low, high = (ranges or {}).get(name) or _telling_range(controller, rest, name)
        x = np.linspace(low, high, POINTS)
        answers = [_answer(controller, {**rest, name: float(value)}) for value in x]
        for action in controller.actions:
            curves[action][name] = (x, np.array([answer[action] for answer in answers]))
    units = {name: controller.unit(name).strip() for name in (*inputs, *controller.actions)}
    titles = tuple(with_unit(action, units[action], between="\n") for action in controller.actions)
    return _curves(curves, units, titles)


def _answer(controller: Controller, observation: dict[str, float]) -> dict[str, float]:
    aims = {name: controller.setpoint.get(name, 0.0) for name in controller.follows}
    return controller.act(observation, controller.reset(), aims)


def _telling_range(controller: Controller, rest: dict[str, float], name: str) -> _Range:
    """Go outwards by factors until the actions stop changing, which is where their limits are."""
    middle = rest[name]
    reaches = [0.01 * 2.0**k for k in range(20)]
    ends = [
        [*_answer(controller, {**rest, name: middle + side * reach}).values()]
        for reach in reaches
        for side in (-1, 1)
    ]
    change = np.abs(np.diff(np.array(ends).reshape(len(reaches), -1), axis=0)).max(axis=1)
    moving = np.flatnonzero(change > 1e-3 * change.max()) if change.max() > 0 else np.zeros(0, int)
    ended = moving.size > 0 and moving[-1] + 2 < len(reaches)
    reach = 1.3 * reaches[moving[-1] + 1] if ended else 1.0  # without limits, one unit is as good as any
    return middle - reach, middle + reach


def _curves(
    rows: Mapping[str, Mapping[str, tuple[Floats, Floats]]], units: Mapping[str, str], titles: Sequence[str]
) -> "Figure":
    """Draw a panel for each quantity and each input; those of a quantity share their scale."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    inputs = list(next(iter(rows.values())))
    wide = min(4, max(1, len(inputs)))
    tall = math.ceil(len(inputs) / wide)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(2.4 * wide + 0.8, (1.9 * tall) * len(rows) + 0.3), layout="constrained")
        grid = figure.subplots(tall * len(rows), wide, squeeze=False)
        for number, (curves, title, colour) in enumerate(
            zip(rows.values(), titles, cycle(COLOURS), strict=False)
        ):
            panels = grid[number * tall : (number + 1) * tall].ravel()
            heights = np.concatenate([y for _, y in curves.values()] or [np.zeros(1)])
            margin = 0.06 * float(np.ptp(heights)) or 0.5
            for panel, name in zip(panels, inputs, strict=False):
                panel.plot(*curves[name], color=colour, lw=1.5)
                panel.set_ylim(float(heights.min()) - margin, float(heights.max()) + margin)
                panel.set_xlabel(with_unit(name, units[name]))
                panel.margins(x=0)
            for panel in panels[len(inputs) :]:
                panel.set_visible(False)
            panels[0].set_ylabel(title)
    return figure


@draw.register(Surrogate)
def draw_surrogate(surrogate: Surrogate, *, batch: Batch | None = None) -> "Figure":
    """Draw how far the members of a model agree, or with a log, how well they predict it.

    Args:
        surrogate: The model.
        batch: The log that it was learned from; its held-out part is predicted. Without it, the members are
            run with each action held constant, from the middle of what they have seen.
    """
    if batch is not None:
        return draw_quality(assess(surrogate, surrogate.split(batch)[1]))
    task = surrogate.task
    middle = surrogate.region.mean(axis=1)[: len(task.states)] if surrogate.region.size else None
    start = {} if middle is None else dict(zip(task.state_names, map(float, middle), strict=True))
    low, high = task.action_limits[:, 0], task.action_limits[:, 1]
    courses = {}
    for share in STEPS:
        held = low + share * (high - low)
        outputs = {name: f"{value:.17g}" for name, value in zip(task.action_names, held, strict=True)}
        controller = Equation(outputs=outputs)
        courses[f"actions at {share:.0%} of their range"] = simulate(
            controller, task, surrogate=surrogate, start=start
        )
    return draw_trajectories(courses)


@draw.register(Result)
def draw_result(result: Result) -> "Figure":
    """Draw the front: the promise of each controller with its interval, its penalty on the plant, its law.

    Args:
        result: What `learn` found.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    front = result.front
    x, promised = front["complexity"].to_numpy(), front["penalty_model"].to_numpy()
    low, high = front["penalty_low"].to_numpy(), front["penalty_high"].to_numpy()
    tested = front["penalty_system"].to_numpy()
    with rc_context(SETTINGS):
        figure = Figure(figsize=(8.6, 3.6), layout="constrained")
        axes = figure.subplots()
        known = np.isfinite(low) & np.isfinite(high)
        axes.vlines(x[known], low[known], high[known], color=BLUE, alpha=0.35, lw=4, label="95 % interval")
        axes.plot(x, promised, "o-", color=BLUE, lw=1, ms=5, label="promised")
        if np.isfinite(tested).any():
            axes.plot(x, tested, "D", color=ORANGE, ms=4.5, label="on the plant")
        axes.set_xlabel("complexity")
        axes.set_ylabel("penalty")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="best")
        _write_laws(axes, result)
    return figure


_MOST_LAWS, _LONGEST_LAW = 9, 46  # beside a front: how many, and characters of each
_LINE = 0.085  # height of a law, as a share of the axes


def _write_laws(axes: Any, result: Result) -> None:
    """Write the controllers beside the points of a front, the pick in bold; of many only some."""
    points, best = result.points, result.points.index(result.best_point)
    chosen = {*np.linspace(0, len(points) - 1, min(len(points), _MOST_LAWS)).astype(int).tolist()}
    if best not in chosen:
        chosen = chosen - {min(chosen, key=lambda k: abs(k - best))} | {best}
    low, high = axes.get_ylim()
    heights = {k: (points[k].model.penalty - low) / (high - low) for k in chosen}
    order = sorted(chosen, key=lambda k: (-heights[k], k))
    for place, k in enumerate(order):  # from the top: below the one before, with room for those that follow
        room = _LINE * (len(order) - 1 - place)
        above = heights[order[place - 1]] - _LINE if place else 1.0
        heights[k] = min(max(heights[k], room), above)
    for k in order:
        law = points[k].controller.summary
        axes.annotate(
            law if len(law) <= _LONGEST_LAW else f"{law[: _LONGEST_LAW - 1]}…",
            (points[k].controller.complexity, points[k].model.penalty),
            (1.04, heights[k]),
            textcoords="axes fraction",
            arrowprops={
                "arrowstyle": "-",
                "color": GREY,
                "lw": 0.6,
                "alpha": 0.7,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
            va="center",
            fontsize=8,
            weight="bold" if k == best else "normal",
            parse_math=False,
        )


@draw.register(Trajectory)
def draw_trajectory(trajectory: Trajectory) -> "Figure":
    """Draw a panel for each state and each action over time.

    Args:
        trajectory: What `simulate` returned.
    """
    return draw_trajectories({trajectory.task.name: trajectory})


@draw.register(Diagnosis)
def draw_diagnosis(diagnosis: Diagnosis) -> "Figure":
    """Draw the responses to a step of each setpoint; without setpoints there is nothing to draw.

    Args:
        diagnosis: What `diagnose` found.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not diagnosis.steps:
        raise ClearloopError("no state has a setpoint, so there is no step response to draw")
    actions = diagnosis.controller.actions
    with rc_context(SETTINGS):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        grid = figure.subplots(2, len(diagnosis.steps), sharex="col", squeeze=False)
        for column, step in enumerate(diagnosis.steps):
            state, action = grid[:, column]
            state.step(step.times, step.setpoints, where="post", color=GREY, lw=1, ls="--")
            for course in step.values:
                state.plot(step.times, course, color=BLUE, lw=1.2)
            for course in step.actions:
                for values, colour in zip(course.T, cycle(COLOURS[1:]), strict=False):
                    action.step(step.times[:-1], values, where="post", color=colour, lw=1)
            state.set_title(step.words, fontsize=9)
            state.set_ylabel(with_unit(step.state, step.unit))
            action.set_ylabel(", ".join(actions))
            action.set_xlabel("time (s)")
    return figure
