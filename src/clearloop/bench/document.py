"""`table.md`: what a bench found, for people."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from clearloop.bench.engines import Failure
from clearloop.bench.table import PAPER, Mean, Scores, ordered, ranking

TITLES = {"nfq-last": "NFQ last", "nfq-selected": "NFQ selected"}


def document(
    title: str,
    tracks: Mapping[str, Sequence[Scores]],
    published: Mapping[str, Sequence[Scores]],
    failed: Mapping[str, Failure],
    *,
    in_paper: bool,
) -> str:
    """`published`: of each track, the controllers of the paper with our starts and models."""
    parts = [f"# {title}", ""]
    for track, scores in tracks.items():
        parts += [f"## Track {track}", ""]
        if scores:
            parts += [*_table(scores, in_paper), "", *_starts(scores), "", *_ranking(scores), ""]
        else:
            parts += ["No experiment was finished.", ""]
        if published[track]:
            parts += ["Published controllers, from the same starts:", "", *_published(published[track]), ""]
    if failed:
        parts += ["## What failed", ""]
        parts += [f"- {key}, {failure.reason}" for key, failure in failed.items()] + [""]
    return "\n".join(parts)


def _table(scores: Sequence[Scores], in_paper: bool) -> Iterable[str]:
    """A column for each method; model above system, as in the paper."""
    methods = ordered([one.row.method for one in scores])
    rows = {method: [one.row for one in scores if one.row.method == method] for method in methods}

    def line(name: str, cells: Iterable[str]) -> str:
        return f"| {name} | {' | '.join(cells)} |"

    yield line("penalty", (TITLES.get(method, method.upper()) for method in methods))
    yield line("---", ("---" for _ in methods))
    figures = {
        "model": [Mean.of([row.penalty_model for row in rows[method]]) for method in methods],
        "system": [Mean.of([row.penalty_system for row in rows[method]]) for method in methods],
    }
    for number, (name, means) in enumerate(figures.items()):
        yield line(name, map(str, means))
        if in_paper:
            yield line(f"{name}, paper", (PAPER.get(method, ("", ""))[number] for method in methods))
    failures = (Mean.of([row.failures_system for row in rows[method]]).mean for method in methods)
    yield line("failures", ("" if np.isnan(share) else f"{100 * share:.1f} %" for share in failures))
    complexities = (np.mean([row.complexity for row in rows[method]]) for method in methods)
    yield line("complexity", (f"{size:.0f}" for size in complexities))
    yield line("experiments", (str(len(rows[method])) for method in methods))


def _starts(scores: Sequence[Scores]) -> Iterable[str]:
    counts = sorted({len(one.model) for one in scores})
    yield (
        "Means ± standard errors over experiments. Penalties are means over the first"
        f" {counts[-1]:,} points of the scoring set."
    )
    if len(counts) > 1:
        few = ", ".join(ordered([one.row.method for one in scores if len(one.model) == counts[0]]))
        yield f"Of {few}: over the first {counts[0]}. From these, on the system:"
        yield ""
        yield "| method | system |"
        yield "|---|---|"
        for method in ordered([one.row.method for one in scores]):
            costs = [one.system for one in scores if one.row.method == method]
            yield f"| {method} | {Mean.of([None if c is None else c[: counts[0]].mean() for c in costs])} |"


def _ranking(scores: Sequence[Scores]) -> Iterable[str]:
    """Which is better, and whether that is certain."""
    compared = ranking(scores)
    if not compared:
        return
    yield "From the best to the worst, with 95 % intervals of the difference to the one before, from the same"
    yield "starts:"
    yield ""
    yield "| method | costs more than | by | certain |"
    yield "|---|---|---|---|"
    for one in compared:
        certain = "yes" if one.difference.certain else "no"
        yield f"| {one.method} | {one.better} | {one.difference} | {certain} |"


def _published(scores: Sequence[Scores]) -> Iterable[str]:
    yield "| controller | model | system | failures |"
    yield "|---|---|---|---|"
    for title in dict.fromkeys(one.row.method for one in scores):
        rows = [one.row for one in scores if one.row.method == title]
        model = Mean.of([row.penalty_model for row in rows])
        system, failures = rows[0].penalty_system, rows[0].failures_system
        yield f"| {title} | {model} | {system or 0:.3f} | {100 * (failures or 0):.1f} % |"
