"""Individuals of genetic programming as trees, with their arrays below (the paper's figure 6).

Everything is laid out in inches, so that labels are as large in a big tree as in a small one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clearloop.figures.style import BLACK, BLUE, GREY, ORANGE, RED, SETTINGS
from clearloop.search.gp.genome import Genome, Slice, Vocabulary
from reproductions.specimen import CELL, LEVEL, LINE, NODE, TITLE, Panel, Specimen, measure, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE = 7.5  # inches, the usual width
GAP, MARGIN = 0.3, 0.15  # between individuals; around all


def draw_individuals(
    specimens: Sequence[Specimen], vocabulary: Vocabulary, variables: Sequence[str]
) -> "Figure":
    """Trees and postfix arrays, in two columns where there is room. `variables`: their names, by number."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    half = (PAGE - 2 * MARGIN - GAP) / 2
    panels = [measure(specimen, vocabulary, variables, half) for specimen in specimens]
    columns = 2 if len(panels) > 1 and max(panel.size[0] for panel in panels) <= half else 1
    if columns == 1:
        panels = [measure(specimen, vocabulary, variables, PAGE - 2 * MARGIN) for specimen in specimens]
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    heights = [max(panel.size[1] for panel in row) for row in rows]
    wide = max(panel.size[0] for panel in panels)
    width = max(PAGE, wide + 2 * MARGIN)
    height = sum(heights) + GAP * len(rows) + 2 * MARGIN
    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        top, room = MARGIN, (width - 2 * MARGIN - GAP * (columns - 1)) / columns
        for row, tall in zip(rows, heights, strict=True):
            for column, panel in enumerate(row):
                _draw(axes, panel, MARGIN + column * (room + GAP) + (room - panel.size[0]) / 2, top)
            top += tall + GAP
        said = (
            "Arrays are in postfix order: arguments first, then what takes them; below each gene, its code."
        )
        axes.text(width / 2, height - MARGIN, said, ha="center", va="bottom", fontsize=7, color=GREY)
    return figure


def draw_crossover(
    parents: tuple[Genome, Genome],
    cuts: tuple[Slice, Slice],
    vocabulary: Vocabulary,
    variables: Sequence[str],
) -> "Figure":
    """Two parents with their cutting points, and the offspring that have exchanged these parts."""
    (first, second), (mine, theirs) = parents, cuts
    child, sibling = (
        first.replace(*mine, second.slice(*theirs)),
        second.replace(*theirs, first.slice(*mine)),
    )
    specimens = [
        Specimen("First parent", first, mine, BLUE, cut=True),
        Specimen("Second parent", second, theirs, ORANGE, cut=True),
        Specimen("First child", child, (mine[0], mine[0] + theirs[1] - theirs[0]), ORANGE),
        Specimen("Second child", sibling, (theirs[0], theirs[0] + mine[1] - mine[0]), BLUE),
    ]
    return draw_individuals(specimens, vocabulary, variables)


def _draw(axes: "Axes", panel: Panel, left: float, top: float) -> None:
    specimen, width = panel.specimen, panel.size[0]
    title = f"{specimen.title}, complexity {panel.complexity}"
    axes.text(left + width / 2, top, title, ha="center", va="top", fontweight="bold")
    _draw_tree(axes, panel, left + (width - panel.tree[0]) / 2, top + TITLE + NODE / 2)
    top += TITLE + panel.tree[1] * LEVEL
    first = left + (width - max(panel.length(line) for line in panel.lines)) / 2
    for line in panel.lines:
        x = first
        for place in line:
            _draw_cell(axes, panel, place, x, top + 0.1)
            x += width_of(panel.labels[place])
        top += LINE


def _draw_tree(axes: "Axes", panel: Panel, left: float, top: float) -> None:
    specimen = panel.specimen
    for node in panel.root.all():
        x, y = left + node.x, top + node.depth * LEVEL
        for child in node.children:
            below = left + child.x, y + LEVEL
            axes.plot([x, below[0]], [y, below[1]], color=GREY, linewidth=0.8, zorder=1)
            if specimen.cut and specimen.part and child.key == specimen.part[1] - 1:
                _draw_cut(axes, x + 0.55 * (below[0] - x), y + 0.55 * LEVEL)
        if specimen.cut and specimen.part and node is panel.root and node.key == specimen.part[1] - 1:
            _draw_cut(axes, x, y - NODE / 2 - 0.05)
        face = specimen.colour if _within(specimen, node.key) else "white"
        axes.text(
            x,
            y,
            panel.labels[node.key],
            ha="center",
            va="center",
            fontsize=8,
            color="white" if face == BLUE else BLACK,
            bbox={"boxstyle": "round,pad=0.28", "facecolor": face, "edgecolor": GREY, "linewidth": 0.7},
            zorder=2,
        )


def _draw_cut(axes: "Axes", x: float, y: float) -> None:
    axes.plot([x - 0.08, x + 0.08], [y, y], color=RED, linewidth=2, zorder=3)


def _draw_cell(axes: "Axes", panel: Panel, place: int, left: float, top: float) -> None:
    """A gene: what it is, its number above, its code below."""
    from matplotlib.patches import Rectangle

    specimen, width = panel.specimen, width_of(panel.labels[place])
    face = specimen.colour if _within(specimen, place) else "white"
    axes.add_patch(
        Rectangle((left, top), width, CELL, facecolor=face, edgecolor=GREY, linewidth=0.7, zorder=1)
    )
    middle = left + width / 2
    ink = "white" if face == BLUE else BLACK
    axes.text(middle, top + CELL / 2, panel.labels[place], ha="center", va="center", fontsize=8, color=ink)
    code = str(specimen.genome.code[place])
    axes.text(middle, top + CELL + 0.02, code, ha="center", va="top", fontsize=6, color=GREY)


def _within(specimen: Specimen, place: int) -> bool:
    return specimen.part is not None and specimen.part[0] <= place < specimen.part[1]
