"""`make reproduce`: all of them. The searches take hours on two cores, and go on where they were stopped."""

from reproductions import (
    fitted_q,
    hardware,
    invariance,
    learned_reward,
    pid,
    planted_laws,
    plants,
    population,
    promises,
    published_controllers,
    search,
    table,
    trajectories,
)

NUMBERS = (
    published_controllers,
    table,
    search,
    learned_reward,
    invariance,
    planted_laws,
    fitted_q,
    plants,
    pid,
    hardware,
    promises,
)
FIGURES = (trajectories, population)

if __name__ == "__main__":
    for reproduction in (*NUMBERS, *FIGURES):
        reproduction.main()
