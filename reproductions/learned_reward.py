"""Is the promise kept when the reward, too, is learned from the log? GPRL on the cart-pole, seeds 0 to 2.

`python -m reproductions.learned_reward [BUDGET]`. The task that learns knows a column of rewards and no
formula; the plant, with its formula, is used for scoring only.
"""

import sys

import numpy as np

from clearloop.evaluation import evaluate
from clearloop.methods import learn
from clearloop.methods.gprl import GPRL
from clearloop.plants.exploration import make_batch
from clearloop.task import Task
from reproductions.published_controllers import Mean

SEEDS = range(3)


def main() -> None:
    budget = sys.argv[1] if len(sys.argv) > 1 else "quick"
    known = Task.load("cartpole")
    tables = known.model_dump(mode="json", exclude={"reward", "plant"})
    task = Task.from_dict(tables | {"reward": {"column": "reward"}})
    promised, charged = [], []
    for seed in SEEDS:
        batch = make_batch(known, rng=np.random.default_rng(seed))
        result = learn(task, batch, GPRL(), rng=np.random.default_rng([seed, 2]), budget=budget)
        best = result.points[-1]
        promised.append(best.model.penalty)
        charged.append(evaluate(best.controller, known).penalty)
        figures = f"promised {promised[-1]:.3f}, on the plant {charged[-1]:.3f}"
        print(f"{seed}: {figures}: {best.controller.summary}", flush=True)
    apart = ", ".join(f"{b / a - 1:+.1%}" for a, b in zip(promised, charged, strict=True))
    print(f"promised {Mean(promised)}, on the plant {Mean(charged)}; apart {apart}")


if __name__ == "__main__":
    main()
