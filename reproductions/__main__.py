"""`make reproduce`: all of them; the searches take about an hour on two idle cores."""

from reproductions import (
    baselines,
    fitted_q,
    invariance,
    learned_reward,
    planted_laws,
    published_controllers,
    readable_methods,
)

if __name__ == "__main__":
    for reproduction in (
        published_controllers,
        readable_methods,
        baselines,
        learned_reward,
        invariance,
        planted_laws,
        fitted_q,
    ):
        reproduction.main()
