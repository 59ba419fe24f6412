"""The controllers of the paper (sec. 4.3 and 4.4) as files, with the penalties that the paper reports."""

from importlib.resources import files
from typing import NamedTuple

from clearloop.controllers import Controller, from_json
from clearloop.task import Task


class Published(NamedTuple):
    """A published controller.

    Attributes:
        file: The name of its file, without the ending.
        title: Its name for people.
        model: The paper's penalty on its model.
        system: The paper's penalty on the plant, from starts that the paper does not state.
    """

    file: str
    title: str
    model: float | None
    system: float | None

    def load(self) -> Controller:
        """Return the controller."""
        text = (files("clearloop.published") / f"{self.file}.json").read_text(encoding="utf-8")
        return from_json(text, source=self.file)


CARTPOLE = (
    Published("gprl", "GPRL equation", 2.00, 2.73),
    Published("pid", "PID", 2.03, 3.04),
    Published("lqr", "LQR", 2.23, 3.01),
    Published("none", "no force", None, None),
)


def published_for(task: Task) -> tuple[Published, ...]:
    """Return the controllers that were published for exactly the plant of this task."""
    theirs = Task.load("cartpole")
    ours = (task.dt, task.states, task.actions, task.plant)
    return CARTPOLE if ours == (theirs.dt, theirs.states, theirs.actions, theirs.plant) else ()
