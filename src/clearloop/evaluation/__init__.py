"""What controllers cost: on the plant, on a surrogate; and what the batch alone can tell."""

from clearloop.evaluation.planning import with_model
from clearloop.evaluation.q_evaluation import FittedQ, fitted_q
from clearloop.evaluation.rollouts import Evaluation, SetpointChange, Trajectory, evaluate, simulate

__all__ = [
    "Evaluation",
    "FittedQ",
    "SetpointChange",
    "Trajectory",
    "evaluate",
    "fitted_q",
    "simulate",
    "with_model",
]
