"""The front of a run: what each controller costs, over how complex it is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clearloop.figures.style import BLACK, GREY, SETTINGS, Mark, logarithmic, marks, penalty_panels
from clearloop.registry import METHODS
from clearloop.runs import Entry, Front, PublishedEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 60  # complexities over more than this are drawn on a logarithmic axis
APART = 0.16  # inches between lines of text


def draw_front(front: Front) -> "Figure":
    """Penalties on the plant, filled; as promised, hollow; the pick in a ring; published ones as lines."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    of_method = marks((entry.method for entry in front.entries), METHODS)
    tested = any(entry.penalty_system is not None for entry in front.entries)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.5, 4.6), layout="constrained")
        panels = penalty_panels(figure, _penalties(front))
        for axes in panels:
            for method, mark in of_method.items():
                entries = [entry for entry in front.entries if entry.method == method]
                _draw_steps(axes, entries, mark)
                charged = [_charged(entry) for entry in entries if entry.penalty_system is not None]
                _draw_points(axes, [_promised(entry) for entry in entries], mark, "white", aside=tested)
                _draw_points(axes, charged, mark, mark.colour)
            _ring(axes, front.entries[front.pick])
        _scale(panels, [entry.complexity for entry in front.entries])
        figure.supylabel("penalty (minus the discounted return; no unit)", fontsize="medium")
        panels[-1].set_xlabel("complexity (symbols, weighted; no unit)")
        _draw_published(figure, panels, front.published)
        _explain(figure, of_method, tested=tested, published=bool(front.published))
    return figure


class _Point(NamedTuple):
    complexity: int
    penalty: float
    error: float


def _promised(entry: Entry) -> _Point:
    return _Point(entry.complexity, entry.penalty_model, entry.penalty_model_se or 0.0)


def _charged(entry: Entry) -> _Point:
    """On the plant, where there is one."""
    if entry.penalty_system is None:
        return _promised(entry)
    return _Point(entry.complexity, entry.penalty_system, entry.penalty_system_se or 0.0)


def _penalties(front: Front) -> list[float]:
    """All that must be seen: errors make the range larger, but do not decide what is best."""
    points = [point for entry in front.entries for point in (_promised(entry), _charged(entry))]
    ends = [point.penalty + sign * point.error for point in points for sign in (-1, 1)]
    return [*ends, *(known.penalty_system for known in front.published)]


def _draw_steps(axes: "Axes", entries: Sequence[Entry], mark: Mark) -> None:
    """From the simplest to the best: what the next costs, the complexity up to it does not buy."""
    points = sorted(_charged(entry)[:2] for entry in entries)
    axes.step(*zip(*points, strict=True), where="post", color=mark.colour, linewidth=0.8, alpha=0.6)


def _draw_points(
    axes: "Axes", points: Sequence[_Point], mark: Mark, face: str, *, aside: bool = False
) -> None:
    """Those that belong on these axes; `aside`: a hair to the left, so that no error hides another."""
    from matplotlib.transforms import ScaledTranslation

    low, high = axes.get_ylim()
    inside = [point for point in points if low < point.penalty <= high]
    if not inside:
        return
    complexity, penalty, error = zip(*inside, strict=True)
    inches: Any = axes.figure.dpi_scale_trans
    place = axes.transData + ScaledTranslation(-3 / 72 * aside, 0, inches)
    style: dict[str, Any] = {
        "color": mark.colour,
        "markerfacecolor": face,
        "markersize": 4.5,
        "clip_on": False,
        "zorder": 3,
    }
    bars: dict[str, Any] = {"ecolor": mark.colour, "elinewidth": 0.7, "capsize": 1.5}
    axes.errorbar(complexity, penalty, error, fmt="none", transform=place, **bars)
    axes.plot(complexity, penalty, mark.marker, transform=place, **style)


def _ring(axes: "Axes", pick: Entry) -> None:
    complexity, penalty, _ = _charged(pick)
    low, high = axes.get_ylim()
    if low < penalty <= high:
        style: dict[str, Any] = {
            "color": BLACK,
            "markerfacecolor": "none",
            "markersize": 13,
            "clip_on": False,
            "zorder": 4,
        }
        axes.plot(complexity, penalty, "o", **style)


def _scale(panels: "Sequence[Axes]", complexities: Sequence[int]) -> None:
    low, high = min(complexities), max(complexities)
    axes = panels[-1]
    if low > 0 and high - low > WIDE:
        logarithmic(axes.xaxis, within=(1.0, 2.0, 5.0))
        axes.set_xlim(low / 1.15, high * 1.15)
    else:
        margin = max(0.04 * (high - low), 1.0)
        axes.set_xlim(low - margin, high + margin)
        axes.locator_params(axis="x", integer=True)


def _draw_published(figure: "Figure", panels: "Sequence[Axes]", published: Sequence[PublishedEntry]) -> None:
    """A line across for each, with its name at the right, moved aside where names would overlap."""
    for axes in panels:
        low, high = axes.get_ylim()
        inside = sorted(
            (row for row in published if low < row.penalty_system <= high), key=lambda row: row.penalty_system
        )
        below = -1.0
        height = figure.get_size_inches()[1] * (0.2 if axes is not panels[-1] else 0.6)
        for row in inside:
            axes.axhline(row.penalty_system, color=GREY, linewidth=0.9, linestyle="--", zorder=0)
            place = axes.transData.transform((1, row.penalty_system))[1]
            share = axes.transAxes.inverted().transform((0, place))[1]
            below = max(share, below + APART / height)
            axes.annotate(
                f"{row.title} {_short(row.penalty_system)}",
                (1, row.penalty_system),
                (1.02, below),
                xycoords=axes.get_yaxis_transform(),
                textcoords="axes fraction",
                va="center",
                color=GREY,
                fontsize="small",
                arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0},
            )


def _short(penalty: float) -> str:
    return f"{penalty:.2f}" if 0.01 <= abs(penalty) < 1e4 else f"{penalty:.3g}"


def _explain(figure: "Figure", of_method: Mapping[str, Mark], *, tested: bool, published: bool) -> None:
    from matplotlib.lines import Line2D

    def symbol(marker: str, colour: str, face: str, size: float) -> Line2D:
        return Line2D(
            [], [], linestyle="none", marker=marker, color=colour, markerfacecolor=face, markersize=size
        )

    handles = [symbol(mark.marker, mark.colour, mark.colour, 5) for mark in of_method.values()]
    labels = list(of_method)
    if tested:
        handles.append(symbol("o", GREY, GREY, 5))
        labels.append("on the plant, ± standard error")
    handles += [symbol("o", GREY, "white", 4), symbol("o", BLACK, "none", 10)]
    labels += ["promised by the model", "the pick"]
    if published:
        handles.append(Line2D([], [], color=GREY, linewidth=0.9, linestyle="--"))
        labels.append("published, on the plant")
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
