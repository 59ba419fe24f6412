"""Random controllers of every readable kind: the Structured Text is the same function, and never fails.

`CLEARLOOP_CONTROLLERS=1000` in the environment tries as many of each kind.
"""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearloop.controllers import from_json
from clearloop.errors import ClearloopError
from clearloop.exports import DOUBLE, SINGLE, Precision, export
from clearloop.exports.targets import check_limits
from clearloop.registry import KINDS
from clearloop.verification.verdict import run_text, text_of_project
from tests.controllers.kinds import POPULATED
from tests.controllers.strategies import tables
from tests.exports.batch import Actions, Case, make_case
from tests.exports.test_hard import FEW
from tests.exports.test_random import COMPARED, COMPARED_SINGLE, MOSTLY, cases, check

READABLE = tuple(kind for kind in POPULATED if KINDS[kind].readable)


def run(case: Case, to: str = "st") -> Actions:
    """The interpreter refuses whatever overflows or has no value."""
    (text,) = export(case.controller, to=to, precision=case.precision.name, without=["guard"]).values()
    return run_text(text_of_project(text) if to == "plcopen" else text, case.routine, case.episodes)


@pytest.mark.parametrize("kind", READABLE)
def test_double_precision(kind: str) -> None:
    tried = cases(kind, DOUBLE.name)
    check(tried, [run(case) for case in tried])
    assert np.concatenate([case.expectation.compared for case in tried]).mean() > COMPARED.get(kind, MOSTLY)


@pytest.mark.parametrize("kind", READABLE)
def test_single_precision(kind: str) -> None:
    tried = cases(kind, SINGLE.name)
    check(tried, [run(case) for case in tried])
    assert np.concatenate([case.expectation.compared for case in tried]).mean() > COMPARED_SINGLE.get(
        kind, MOSTLY
    )


@pytest.mark.parametrize("kind", READABLE)
def test_in_plcopen(kind: str) -> None:
    tried = cases(kind, DOUBLE.name)[:10]
    check(tried, [run(case, "plcopen") for case in tried])


@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize("kind", READABLE)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_extreme_numbers_and_odd_words(kind: str, precision: Precision, data: st.DataObject) -> None:
    controller = from_json(json.dumps(data.draw(tables(kind))))
    try:
        check_limits(controller, precision)
    except ClearloopError:
        return
    case = make_case(controller, np.random.default_rng(0), FEW, precision=precision)
    check([case], [run(case)])
