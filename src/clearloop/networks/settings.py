"""What training is told, and whom it tells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..errors import ClearloopError
from .network import Activation

Loss = Literal["squared", "classes"]
"""squared error, or the cross-entropy of a softmax over the outputs"""

Progress = Callable[[float, float], None]
"""is told the share of the work that is done, and the mean of the networks' best held-out losses so far"""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Adam on shuffled minibatches, its step size falling to 0 by a cosine."""

    hidden: tuple[int, ...] = (10, 10, 10)
    """units of each hidden layer; this and relu: the paper, sec. 4.2"""
    activation: Activation = "relu"
    """of the hidden layers"""
    epochs: int = 200
    """passes over the data"""
    batch_size: int = 128
    """rows in a minibatch"""
    learning_rate: float = 3e-3
    """Adam's step size at the beginning"""

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch_size, self.learning_rate, *self.hidden) <= 0:
            raise ClearloopError(f"{self}: all of its numbers must be positive")
