"""The evaluation of controllers: their penalties on the plant, on a surrogate, or from the batch alone."""

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
