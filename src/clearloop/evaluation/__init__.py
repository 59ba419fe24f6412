"""What controllers cost: on the plant, on a surrogate."""

from clearloop.evaluation.penalty import Evaluation, evaluate
from clearloop.evaluation.planning import with_model
from clearloop.evaluation.trajectory import SetpointChange, Trajectory, simulate

__all__ = ["Evaluation", "SetpointChange", "Trajectory", "evaluate", "simulate", "with_model"]
