import numpy as np
import pytest

from clearloop.expression import Variable
from clearloop.search.gp.formulas import Formulas

FUNCTIONS = (
    "add",
    "sub",
    "mul",
    "div",
    "min",
    "max",
    "abs",
    "tanh",
    "clip",
    "if",
    "lt",
    "gt",
    "and",
    "or",
    "not",
)


@pytest.fixture(scope="package")
def formulas() -> Formulas:
    """Two outputs over three variables of very different sizes."""
    variables = [Variable("x"), Variable("y"), Variable("z", lag=2)]
    return Formulas(FUNCTIONS, variables, np.array([0.1, 1.0, 100.0]), np.array([10.0, 2.0]))
