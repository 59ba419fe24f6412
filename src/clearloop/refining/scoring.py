"""What controllers of one kind cost, from the same starts on the same models: a population in one call."""

from collections.abc import Sequence

import numpy as np

from clearloop.controllers import Controller, encode
from clearloop.data.cells import Floats
from clearloop.evaluation.setup import make_job, make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.plants.scenarios import Scenarios
from clearloop.programs.features import Features
from clearloop.surrogate import Surrogate
from clearloop.task import Task


class Judge:
    """Penalties on members of a surrogate, in double precision."""

    def __init__(self, controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> None:
        """By the members that judge, for controllers that look back no farther than this one."""
        self.task, self._rows = task, window(task, [controller])
        self._features = Features(task.state_names, task.action_names, self._rows)
        self._system = make_system(task, surrogate, self._rows, surrogate.judge_members)
        self._job = make_job(task, controller, starts, surrogate, self._rows)

    def __call__(self, controllers: Sequence[Controller]) -> Floats:
        """[P, N] of each from each start, means over members. The engine takes those of one shape at once."""
        shapes = [tuple(controller.sizes(self._features)) for controller in controllers]
        penalties = np.zeros((len(controllers), len(self._job.starts)))
        for shape in dict.fromkeys(shapes):
            places = [place for place, other in enumerate(shapes) if other == shape]
            policies = encode([controllers[place] for place in places], self.task, history=self._rows)
            penalties[places] = -roll_out(policies, self._system, self._job).returns.mean(axis=0)
        return penalties
