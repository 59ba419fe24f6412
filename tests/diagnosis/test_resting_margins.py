"""Margins where the models of a log rest, and what is said if such models disagree."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.controllers import Linear
from clearloop.data import Batch
from clearloop.diagnosis.margins import (
    LoggedMargins,
    Margin,
    Margins,
    _doubted,
    _Words,
    find_margins,
    find_resting_margins,
)
from clearloop.evaluation.linearisation import Linearisation

from .test_margins_sums import LIGHT, loop

RNG = np.random.default_rng(0)
STATES, ACTIONS = RNG.uniform(-1, 1, (2, 60, 1))
LOG = Batch(LIGHT.task.columns, STATES, ACTIONS, np.arange(60) // 10, np.zeros(60, np.bool_))
LAW = Linear(gains={"u0": {"x0": -0.5}})  # which did not make the log
FALLING = loop([[[0.5, 1.0]]], [[[-1.6, 0.0]]])  # an eigenvalue of -1.1
RESTLESS = replace(LIGHT, at_rest=False)


def resting(linear: Linearisation, members: list[Linearisation]) -> LoggedMargins:
    return find_resting_margins(LAW, linear, members, LOG)


def test_models_that_agree_leave_nothing_unknown() -> None:
    found = resting(LIGHT, [LIGHT] * 5)
    assert found.margins is not None
    assert found.margins.actions == find_margins(LIGHT).actions  # type: ignore[union-attr]
    assert (found.why, found.unknown) == ("", frozenset())


def test_the_plant_itself_leaves_no_doubt() -> None:
    found = resting(LIGHT, [])
    assert found.stable is True
    assert (found.why, found.unknown) == ("", frozenset())


def test_what_does_not_rest_has_no_margins() -> None:
    found = resting(RESTLESS, [LIGHT] * 5)
    assert (found.margins, found.why) == (None, "")


def test_most_models_must_rest() -> None:
    assert resting(LIGHT, [LIGHT, RESTLESS]).stable is True
    found = resting(LIGHT, [LIGHT, RESTLESS, RESTLESS])
    assert found.margins is None
    assert found.why == "with most of the models the loop does not rest"


def test_models_that_disagree_about_stability_are_named() -> None:
    found = resting(LIGHT, [LIGHT, FALLING])
    assert found.margins is None
    assert found.why == "the models at rest disagree: the loop is unstable in 50 % of the cases"


# What is said, by the share of the other models that are stable and by whether the controller made the log.

WORDS = _Words("the model", "it is wrong", "it is in doubt: the loop", "these are unknown")
STABLE = Margins((), (Margin("u", 2.0, None, 60.0, 0.5),), steady=True)
UNSTABLE = Margins((), (), steady=False)


def doubted(nominal: Margins, stable: int, made: bool) -> LoggedMargins:
    return _doubted(nominal, [STABLE] * stable + [UNSTABLE] * (40 - stable), lambda: made, WORDS)


@pytest.mark.parametrize(
    ("nominal", "stable", "made", "why"),
    [
        (STABLE, 38, False, None),  # one in twenty may disagree
        (STABLE, 37, False, "it is in doubt: the loop is unstable in 7 % of the cases"),
        (STABLE, 37, True, None),  # the log shows that it is stable
        (STABLE, 0, False, "it is in doubt: the loop is unstable in 100 % of the cases"),
        (UNSTABLE, 2, False, None),
        (UNSTABLE, 3, False, "it is in doubt: the loop is unstable in 92 % of the cases"),
        (UNSTABLE, 0, True, "by the model this controller is unstable, but it made the log, which shows that"
         " it is stable: it is wrong"),
    ],
)  # fmt: skip
def test_the_log_or_most_models_decide(nominal: Margins, stable: int, made: bool, why: str | None) -> None:
    found = doubted(nominal, stable, made)
    if why is None:
        assert found.margins is nominal
        assert (found.why, found.unknown) == ("", frozenset())
    else:
        assert (found.margins, found.why, found.unknown) == (None, why, frozenset())


def test_the_log_is_asked_only_in_doubt() -> None:
    assert _doubted(STABLE, [STABLE] * 40, lambda: pytest.fail("asked"), WORDS).margins is STABLE


def test_margins_that_differ_are_unknown() -> None:
    """Only among the models that are stable."""
    others = [Margins((), (Margin("u", up, None, 60.0, delay),), steady=True)
              for up, delay in ((1.1, 0.1), (3.0, 0.9)) for _ in range(20)]  # fmt: skip
    found = _doubted(STABLE, [*others, UNSTABLE], lambda: False, WORDS)
    assert found.unknown == {("u", "gain_up"), ("u", "delay")}
    assert found.why == "these are unknown: delay, gain up"
    assert found.to_dict()["unknown"] == ["u.delay", "u.gain_up"]
