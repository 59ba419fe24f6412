"""What a unit of each variable does where the loop rests, and what a term was in most of a log."""

import numpy as np
import pytest

from clearloop.diagnosis.terms import Experience
from clearloop.expression import Variable, parse
from tests.surrogate.models import CARTPOLE, cartpole_log


@pytest.fixture(scope="module")
def experience() -> Experience:
    rest = np.array([0.1, 0.0, 0.5, 0.0])
    return Experience(CARTPOLE, cartpole_log(400), rest, np.array([0.7]), np.array([0.0, 0.0, 0.5, 0.0]))


def test_slopes_are_those_where_the_loop_rests(experience: Experience) -> None:
    slopes = experience.slopes(parse("3*theta*theta + 2*tanh(rho) + rho.setpoint*rho_dot"))
    assert slopes[Variable("theta")] == pytest.approx(0.6, rel=1e-6)
    assert slopes[Variable("rho")] == pytest.approx(2.0, rel=1e-6)  # rho stands for rho - setpoint
    assert slopes[Variable("rho_dot")] == pytest.approx(0.5, rel=1e-6)
    (of_action,) = experience.slopes(parse("force[t-1]*force[t-1]")).values()
    assert of_action == pytest.approx(1.4, rel=1e-6)


def test_the_usual_range_holds_nine_of_ten_rows(experience: Experience) -> None:
    low, high = experience.range(parse("-10*theta"))
    values = -10 * cartpole_log(400).states[:, 0]
    assert np.mean((values >= low) & (values <= high)) == pytest.approx(0.9, abs=0.01)
    low, high = experience.range(parse("force[t-1]"))
    values = np.nan_to_num(cartpole_log(400).actions[:, 0])
    assert np.mean((values >= low) & (values <= high)) == pytest.approx(0.9, abs=0.01)
    assert experience.range(parse("4")) == (4.0, 4.0)
