"""Small networks: trained as an ensemble, lowered to plain arrays. Only `train` imports JAX."""

from .network import Activation, Network
from .packing import Ensemble, pack, unpack
from .scaling import Scaling
from .settings import Loss, Progress, Training
from .training import Trained, train

__all__ = [
    "Activation",
    "Ensemble",
    "Loss",
    "Network",
    "Progress",
    "Scaling",
    "Trained",
    "Training",
    "pack",
    "train",
    "unpack",
]
