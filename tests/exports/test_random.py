"""Random controllers of every kind through every exporter that runs: the same function, always finite.

`CLEARLOOP_CONTROLLERS=1000` in the environment tries as many of each kind.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from clearloop.exports import DOUBLE, PRECISIONS, SINGLE
from clearloop.verification import Amount
from tests.exports.batch import SANITIZERS, Actions, Case, make_case, run_c, run_javascript, run_python
from tests.exports.controllers import KINDS, controllers

COUNT = int(os.environ.get("CLEARLOOP_CONTROLLERS", "60"))
BRIEF = Amount(episodes=1, length=4, after=1, tries=0, share=0.03)
SEARCHING = Amount(episodes=1, length=2, after=1, tries=2, share=0.0)
SEARCHED = 2  # controllers whose edges are searched, which takes a while

# The least share of steps that can be compared; extremes and cancellations are frequent here.
MOSTLY = 0.5  # for kinds that are not named
COMPARED = {"equation": 0.9, "linear": 0.9, "pid": 0.9, "fuzzy": 0.6, "network": 0.9, "greedy-q": 0.4}
COMPARED_SINGLE = {**COMPARED, "equation": 0.5, "fuzzy": 0.4, "greedy-q": 0.35}


@cache
def cases(kind: str, precision: str, count: int = COUNT) -> list[Case]:
    rng = np.random.default_rng(7)
    made = []
    for number, controller in enumerate(controllers(kind, count)):
        amount = SEARCHING if number < SEARCHED else BRIEF
        made.append(make_case(controller, rng, amount, precision=PRECISIONS[precision]))
    return made


def check(tried: list[Case], answers: list[Actions]) -> None:
    for case, found in zip(tried, answers, strict=True):
        assert np.isfinite(found).all(), case.controller
        difference = case.expectation.difference(found)
        assert difference <= case.expectation.tolerance, (difference, case.controller)


@pytest.mark.parametrize("kind", KINDS)
def test_c_in_double_precision(kind: str, tmp_path: Path) -> None:
    tried = cases(kind, DOUBLE.name)
    check(tried, run_c(tried, tmp_path))
    assert np.concatenate([case.expectation.compared for case in tried]).mean() > COMPARED.get(kind, MOSTLY)


@pytest.mark.parametrize("kind", KINDS)
def test_c_in_single_precision(kind: str, tmp_path: Path) -> None:
    tried = cases(kind, SINGLE.name)
    check(tried, run_c(tried, tmp_path))
    assert np.concatenate([case.expectation.compared for case in tried]).mean() > COMPARED_SINGLE.get(
        kind, MOSTLY
    )


@pytest.mark.parametrize("kind", KINDS)
def test_javascript(kind: str, tmp_path: Path) -> None:
    check(cases(kind, DOUBLE.name), run_javascript(cases(kind, DOUBLE.name), tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_python(kind: str) -> None:
    check(cases(kind, DOUBLE.name), run_python(cases(kind, DOUBLE.name)))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_c_is_clean_under_sanitizers(precision: str, tmp_path: Path) -> None:
    tried = [case for kind in KINDS for case in cases(kind, precision)[:15]]
    check(tried, run_c(tried, tmp_path, *SANITIZERS))
