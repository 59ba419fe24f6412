"""`make reproduce`: all of them. The searches take hours on two cores, and go on where they were stopped."""

from reproductions import (
    baselines,
    fitted_q,
    hardware,
    invariance,
    learned_reward,
    planted_laws,
    population,
    published_controllers,
    readable_methods,
    table,
    trajectories,
)

NUMBERS = (
    published_controllers,
    table,
    readable_methods,
    baselines,
    learned_reward,
    invariance,
    planted_laws,
    fitted_q,
    hardware,
)
FIGURES = (trajectories, population)

if __name__ == "__main__":
    for reproduction in (*NUMBERS, *FIGURES):
        reproduction.main()
