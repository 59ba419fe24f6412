"""Small networks are trained as an ensemble and returned as plain arrays. Only `train` imports JAX."""

from clearloop.networks.network import (
    Activation,
    Ensemble,
    Loss,
    Network,
    Progress,
    Scaling,
    Training,
    pack_networks,
    unpack_networks,
)
from clearloop.networks.training import Trained, train

__all__ = [
    "Activation",
    "Ensemble",
    "Loss",
    "Network",
    "Progress",
    "Scaling",
    "Trained",
    "Training",
    "pack_networks",
    "train",
    "unpack_networks",
]
