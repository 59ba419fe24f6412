"""`make reproduce`: all of them; the searches take about an hour on two idle cores."""

from reproductions import (
    baselines,
    fitted_q,
    invariance,
    learned_reward,
    planted_laws,
    population,
    published_controllers,
    readable_methods,
    trajectories,
)

NUMBERS = (
    published_controllers,
    readable_methods,
    baselines,
    learned_reward,
    invariance,
    planted_laws,
    fitted_q,
)
FIGURES = (trajectories, population)

if __name__ == "__main__":
    for reproduction in (*NUMBERS, *FIGURES):
        reproduction.main()
