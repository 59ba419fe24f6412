"""The reward of a surrogate: the task's own formula, or networks that learned it from the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.data.cells import Flags, Floats
from clearloop.kernels.layout import CLASSES, VALUE, Reward
from clearloop.networks import Network
from clearloop.plants.lowering import lower_reward
from clearloop.surrogate.formulas import judge
from clearloop.surrogate.lowering import lower_networks
from clearloop.surrogate.steps import Steps
from clearloop.task import Task


@dataclass(frozen=True, eq=False)
class KnownReward:
    """What the task file says, failure included; the same for every member."""

    task: Task

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:  # noqa: ARG002 - the same for all
        """Reward and failure [n] of steps [n, columns of the frame]."""
        return judge(self.task, frame)

    @property
    def tells_failure(self) -> bool:
        return self.task.failure_condition is not None

    def failed(self, steps: Steps) -> Flags:
        """[n] which logged steps failed."""
        return judge(self.task, steps.frame)[1]

    def lower(self, members: Sequence[int], history: int, dtype: Any) -> Reward:  # noqa: ARG002
        return lower_reward(self.task, dtype, history)

    def fits(self, members: int) -> bool:  # noqa: ARG002
        return self.task.reward_expression is not None

    def __str__(self) -> str:
        return "the task's own reward"


@dataclass(frozen=True, eq=False)
class LearnedReward:
    """A network for each member, which sees the next state only, or the whole frame."""

    task: Task
    networks: tuple[Network, ...]
    levels: Floats
    """[classes] the rewards that there are, the best first; none where a value is learned"""
    failing: Flags
    """[classes] whether a step with this reward fails"""

    def judge(self, frame: Floats, member: int) -> tuple[Floats, Flags]:
        """Reward and failure [n] of steps [n, columns of the frame]: those of the most probable class."""
        network, n_states = self.networks[member], len(self.task.states)
        later = n_states + self.task.history * len(self.task.scope.names)
        seen = np.hstack([frame[:, :later], frame[:, -n_states:]])
        outputs = network(seen[:, : network.sizes[0]])
        if not self.levels.size:
            return outputs[:, 0], np.zeros(len(frame), np.bool_)
        best = outputs.argmax(axis=1)
        return self.levels[best], self.failing[best]

    @property
    def tells_failure(self) -> bool:
        return bool(self.failing.any())

    def failed(self, steps: Steps) -> Flags:
        """[n] which logged steps failed."""
        return np.isin(steps.reward, self.levels[self.failing])

    def lower(self, members: Sequence[int], history: int, dtype: Any) -> Reward:
        networks = [self._look_back(self.networks[member], history) for member in members]
        return Reward(
            kind=CLASSES if self.levels.size else VALUE,
            code=np.zeros(0, np.int32),
            operand=np.zeros(0, dtype),
            spans=np.zeros(3, np.int64),
            networks=lower_networks(networks, dtype),
            levels=self.levels.astype(dtype),
            failing=self.failing,
        )

    def _look_back(self, network: Network, history: int) -> Network:
        """In a frame with more history, the setpoints stand further back: what is before them is ignored."""
        n_states, width = len(self.task.states), len(self.task.scope.names)
        if network.sizes[0] == n_states or history == self.task.history:
            return network
        setpoints = n_states + self.task.history * width
        more = [setpoints] * (history - self.task.history) * width
        first = np.insert(network.weights[0], more, 0.0, axis=1)
        return Network((first, *network.weights[1:]), network.biases, network.activation)

    def fits(self, members: int) -> bool:
        """Whether there are as many networks, inputs and outputs as there must be."""
        n_states = len(self.task.states)
        frame = 2 * n_states + self.task.history * len(self.task.scope.names)
        shapes = {(network.sizes[0], network.sizes[-1]) for network in self.networks}
        possible = {(inputs, self.levels.size or 1) for inputs in (n_states, frame)}
        return len(self.networks) == members and shapes <= possible and len(self.failing) == self.levels.size

    def __str__(self) -> str:
        return f"reward learned as {f'{self.levels.size} classes' if self.levels.size else 'a value'}"
