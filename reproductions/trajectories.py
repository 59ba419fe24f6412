"""The paper's figure of trajectories: PID and GPRL, with another setpoint of the cart after 200 steps.

`python -m reproductions.trajectories`: in runs/figures, as PNG and SVG.
"""

from clearloop.evaluation import SetpointChange, simulate
from clearloop.figures.trajectories import draw_trajectories
from clearloop.published import CARTPOLE
from clearloop.task import Task
from reproductions.figures import keep

START = {"theta": 0.3, "rho": -1.0}
CHANGE = SetpointChange("rho", 1.0, 200)


def main() -> None:
    task = Task.load("cartpole")
    trajectories = {
        published.title: simulate(published.load(), task, start=START, setpoints=[CHANGE], steps=400)
        for published in CARTPOLE
        if published.file in ("pid", "gprl")
    }
    keep("trajectories", draw_trajectories(trajectories))


if __name__ == "__main__":
    main()
