"""Sec. 4.3 of the paper: the penalties of its LQR, PID and GPRL controllers, on models and on the plant.

The paper does not state its start states, so its own figures can only stand beside ours.
"""

from dataclasses import dataclass

import numpy as np

from clearloop.evaluation import evaluate
from clearloop.plants.exploration import make_batch
from clearloop.published import CARTPOLE
from clearloop.surrogate import BEST, PUBLISHED, Surrogate
from clearloop.task import Task

SEEDS = range(5)


@dataclass(frozen=True)
class Mean:
    """Over seeds, with its standard error."""

    values: list[float]

    def __str__(self) -> str:
        error = np.std(self.values, ddof=1) / np.sqrt(len(self.values))
        return f"{np.mean(self.values):.3f} ± {error:.3f}"


def main() -> None:
    task = Task.load("cartpole")
    scores: dict[tuple[str, str], list[float]] = {}
    for seed in SEEDS:
        batch = make_batch(task, rng=np.random.default_rng(seed))
        for track in (PUBLISHED, BEST):
            surrogate = Surrogate.fit(task, batch, track=track, rng=np.random.default_rng([seed, 1]))
            for published in CARTPOLE:
                penalty = evaluate(published.load(), task, surrogate=surrogate).penalty
                scores.setdefault((published.file, track.name), []).append(penalty)
    print(
        f"{len(SEEDS)} models, each from its own 10,000 transitions, seeds 0 to {SEEDS[-1]}; 1,024 starts.\n"
    )
    print("| controller | paper: model | model, published track | model, best track | paper: plant | plant |")
    print("|---|---|---|---|---|---|")
    for published in CARTPOLE:
        ours = [Mean(scores[published.file, track.name]) for track in (PUBLISHED, BEST)]
        system = evaluate(published.load(), task)
        paper = [f"{value:.2f}" if value else "" for value in (published.model, published.system)]
        print(
            f"| {published.title} | {paper[0]} | {ours[0]} | {ours[1]} | {paper[1]} | {system.penalty:.3f} |"
        )


if __name__ == "__main__":
    main()
