"""Score controllers in the true environments of NeoRL-2. Runs by itself, in a Python of its own.

The environments need other versions of NumPy and pandas than we do, and torch and Box2D. So this file imports
nothing of clearloop: it reads one JSON document from standard input, in which controllers are Python source
that clearloop exported, and writes the return of each episode as a line of JSON to standard output.
"""

import json
import random
import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np


def main() -> None:
    """Run the episodes that are asked for."""
    asked = json.load(sys.stdin)
    sys.path.insert(0, asked["environments"])
    warnings.simplefilter("ignore")
    sys.stdout, answers = sys.stderr, sys.stdout  # environments print what they like
    import gymnasium

    import_module("neorl2")  # registers the environments

    environment = gymnasium.make(asked["environment"])
    law: dict[str, Any] = {}
    exec(compile(asked["source"], "controller", "exec"), law)  # noqa: S102 - our own export
    for seed in asked["seeds"]:
        total, steps = episode(environment, law, asked, seed)
        answers.write(json.dumps({"seed": seed, "return": total, "steps": steps}) + "\n")
        answers.flush()


def episode(environment: Any, law: dict[str, Any], asked: dict[str, Any], seed: int) -> tuple[float, int]:
    """Run one episode; return its sum of rewards, which are not discounted, and its length."""
    random.seed(seed)  # some environments draw from these
    np.random.seed(seed)  # noqa: NPY002
    seen, _ = environment.reset(seed=seed)
    memory, total, steps, over = law["reset"](), 0.0, 0, False
    while not over:
        values = [float(value) for value in seen]
        observation = {name: values[place] for name, place in asked["states"].items()}
        aims = {name: values[place] for name, place in asked["setpoints"].items()}
        action = law["act"](observation, memory, {**asked["aims"], **aims})
        moves = np.array([action[name] for name in asked["actions"]], environment.action_space.dtype)
        seen, reward, ended, cut, _ = environment.step(moves)
        total, steps, over = total + float(reward), steps + 1, bool(ended or cut)
    return total, steps


if __name__ == "__main__":
    main()
