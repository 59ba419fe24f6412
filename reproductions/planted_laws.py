"""How well `clearloop data explain` finds laws that were planted: the figures of docs/explain.md.

`python -m reproductions.planted_laws [SEEDS]`, a few minutes for ten seeds.
"""

import sys

import numpy as np
from tests.explanation.planted import CARTPOLE, TANK, Law, Noise, drifting, held, make_log, tank, white

from clearloop.explanation import Account, explain
from clearloop.plants.exploration import make_batch
from clearloop.task import Task

LAWS: dict[str, tuple[Task, Law, float]] = {
    "linear": (CARTPOLE, Law(kp=(38.8, 10.1, 2.8, 3.9)), 10.0),
    "linear, ±6 N": (CARTPOLE, Law(kp=(120.0, 30.0, 8.0, 12.0)), 6.0),
    "PD, filter 25 ms": (CARTPOLE, Law(kp=(40.0, 0, 3.0, 0), kd=(10.0, 0, 4.0, 0), pole=0.5), 10.0),
    "PI": (TANK, Law(kp=(-8.0,), ki=(-1.5,)), 10.0),
    "PID, filter 0.5 s": (TANK, Law(kp=(-8.0,), ki=(-1.5,), kd=(-6.0,), pole=0.5), 10.0),
    "PID, filter 0.5 s, ±4": (TANK, Law(kp=(-8.0,), ki=(-1.5,), kd=(-6.0,), pole=0.5), 4.0),
}
RANDOM: dict[str, Noise] = {
    "new at every step": held(8, 1),
    "held for 5 steps": held(8, 5),
    "held for 20 steps": held(8, 20),
    "drifting": drifting(3, 0.97),
}


def account(task: Task, law: Law, noise: Noise, seed: int, reach: float = 10.0) -> Account:
    if task is CARTPOLE:
        log = make_log(law, noise, seed, reach=reach)
    else:
        log = make_log(law, noise, seed, reach=reach, task=TANK, plant=tank, episodes=50, steps=300)
    return explain(task, log).accounts[0]


def off(found: Account, law: Law, task: Task) -> float:
    """The largest relative error of a gain; 1 where a term is missing or does not belong."""
    planted: dict[tuple[str, str], float] = {
        (kind, name): float(gain)
        for kind, gains in (("value", law.kp), ("sum", law.ki), ("rate", law.kd))
        for name, gain in zip(task.state_names, np.broadcast_to(gains, len(task.states)), strict=True)
        if gain
    }
    terms = zip(found.law.terms, found.law.gains, strict=True)
    gains: dict[tuple[str, str], float] = {(term.kind, term.state): float(gain) for term, gain in terms}
    if gains.keys() != planted.keys():
        return 1.0
    return max(abs(gains[key] / planted[key] - 1) for key in planted)


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    for noise in (0.3, 1.0):
        for name, (task, law, reach) in LAWS.items():
            found = [account(task, law, white(noise), seed, reach) for seed in seeds]
            errors = [off(one, law, task) for one in found]
            explained = np.mean([one.law.explained for one in found])
            limited = np.mean([one.saturated for one in found])
            print(
                f"{name:24} noise {noise}  explained {explained:.3f}  at limits {limited:.3f}  largest error "
                f"median {np.median(errors):.4f}  worst {max(errors):.4f}",
                flush=True,
            )
    for name, noise_of in RANDOM.items():
        for task in (CARTPOLE, TANK):
            chosen = [account(task, Law(kp=(0.0,)), noise_of, seed).chosen for seed in seeds]
            print(f"random, {name}, {task.name}: called a law in {chosen.count('law')} of {len(chosen)}")
    batches = [make_batch(CARTPOLE, rng=np.random.default_rng(seed)) for seed in seeds]
    chosen = [explain(CARTPOLE, batch).accounts[0].chosen for batch in batches]
    print(f"data make cartpole: called random in {chosen.count('random')} of {len(chosen)}")


if __name__ == "__main__":
    main()
