"""Ready terms of a reward: each is the formula that its twin in plain Python says, never below 0."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.expression import Variable, evaluate, to_text, variables
from clearloop.task import Task

LOW, HIGH, DT = -20.0, 60.0, 0.5
TEXT = f"""
name = "tank"
dt = {DT}
discount = 0.9
horizon = 50
history = 2
[states]
level = {{ setpoint = 1.0 }}
flow = {{}}
[actions]
pump = {{ limits = [{LOW}, {HIGH}] }}
valve = {{ limits = [20, 100] }}
[reward]
"""

Step = dict[str, float]
"""The values of all that a term may look at."""


def task_with(*terms: dict[str, Any], **others: Any) -> Task:
    tables = Task.from_toml(TEXT + 'column = "r"').model_dump(mode="json")
    return Task.from_dict({**tables, "reward": {"terms": list(terms), **others}})


def reward(task: Task, step: Step) -> float:
    expression = task.reward_expression
    assert expression is not None
    return evaluate(expression, {variable: step[str(variable)] for variable in variables(expression)})


def shaped(term: dict[str, Any], deviation: float, scale: float) -> float:
    return (deviation / scale) ** 2 if term.get("shape") == "square" else abs(deviation) / scale


def track(term: dict[str, Any], step: Step) -> float:
    beyond = max(abs(step["level.error"]) - term.get("tolerance", 0.0), 0.0)
    return shaped(term, beyond, term.get("scale", 1.0))


def settle(term: dict[str, Any], step: Step) -> float:
    speed = abs(step["level"] - step["level[t]"])
    moving = "slower_than" in term and speed > term["slower_than"] * DT
    return float(abs(step["level.error"]) > term["within"] or moving)


def limit(term: dict[str, Any], step: Step) -> float:
    below, above = (
        term.get("min", -float("inf")) - step["flow"],
        step["flow"] - term.get("max", float("inf")),
    )
    return shaped(term, max(below, above, 0.0), term.get("scale", 1.0))


def when(_: dict[str, Any], step: Step) -> float:
    return float(step["flow"] > 2 or step["level[t]"] < step["level"])


def effort(term: dict[str, Any], step: Step) -> float:
    return shaped(term, step["pump"] - term.get("around", 0.0), HIGH - LOW)


def rate(term: dict[str, Any], step: Step) -> float:
    return shaped(term, step["pump"] - step["pump[t-1]"], HIGH - LOW)


sizes = st.sampled_from([0.0, 0.5, 3.0]) | st.floats(0.0, 100.0)
scales = st.sampled_from([1.0, 0.1]) | st.floats(1e-3, 1e3)
shape = st.sampled_from(["absolute", "square"])
values = st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-100.0, 100.0)


def some(**needed: Any) -> Callable[..., st.SearchStrategy[dict[str, Any]]]:
    return lambda **others: st.fixed_dictionaries(
        {name: value if isinstance(value, st.SearchStrategy) else st.just(value)
         for name, value in needed.items()},
        optional={"weight": sizes, **others},
    )  # fmt: skip


TERMS = {
    "track": some(track="level")(tolerance=sizes, scale=scales, shape=shape),
    "settle": some(settle="level", within=sizes)(slower_than=sizes),
    "limit": st.one_of(
        some(limit="flow", min=st.floats(-50, 0))(max=st.floats(0, 50), scale=scales, shape=shape),
        some(limit="flow", max=values)(scale=scales, shape=shape),
    ),
    "when": some(when="flow > 2 or level[t] < level")(),
    "effort": some(effort="pump")(around=st.floats(LOW, HIGH), shape=shape),
    "rate": some(rate="pump")(shape=shape),
}
TWINS = {"track": track, "settle": settle, "limit": limit, "when": when, "effort": effort, "rate": rate}
any_term = st.one_of(*TERMS.values())


@st.composite
def steps(draw: st.DrawFn) -> Step:
    level, before, flow = draw(values), draw(values), draw(values)
    return {
        "level": level,
        "level[t]": before,
        "level.error": level - draw(values),
        "flow": flow,
        "pump": draw(st.floats(LOW, HIGH)),
        "pump[t-1]": draw(st.floats(LOW, HIGH)),
    }


def cost(term: dict[str, Any], step: Step) -> float:
    kind = next(key for key in term if key in TWINS)
    return float(term.get("weight", 1.0)) * TWINS[kind](term, step)


@given(st.lists(any_term, min_size=1, max_size=5), steps())
def test_the_reward_is_minus_the_sum_of_costs(terms: list[dict[str, Any]], step: Step) -> None:
    costs = [cost(term, step) for term in terms]
    found = reward(task_with(*terms), step)
    assert all(each >= 0 for each in costs)
    assert found <= 0
    assert found == pytest.approx(-sum(costs), rel=1e-12, abs=1e-12)


@given(st.lists(any_term, min_size=1, max_size=5), steps(), values)
def test_a_failing_case_comes_first(terms: list[dict[str, Any]], step: Step, value: float) -> None:
    task = task_with(*terms, failure="abs(level) > 50", failure_value=value)
    failing = abs(step["level"]) > 50
    assert task.failure_condition is not None
    assert evaluate(task.failure_condition, {Variable("level"): step["level"]}) == failing
    assert reward(task, step) == (value if failing else reward(task_with(*terms), step))
    assert task.failure_level == value
    assert task.reward_levels is None


AT_THE_GOAL = {"level": 1.0, "level[t]": 1.0, "level.error": 0.0, "flow": 0.0, "pump": 0.0, "pump[t-1]": 0.0}


@given(any_term)
def test_nothing_costs_anything_at_the_goal(term: dict[str, Any]) -> None:
    there = {"pump": term["around"]} if "around" in term else {}
    flow = {"flow": term["max"]} if term.get("max", 0.0) < 0 else {}
    assert reward(task_with(term), {**AT_THE_GOAL, **there, **flow}) == 0


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"track": "level"}, "-abs(level.error)"),
        (
            {"track": "level", "tolerance": 0.5, "scale": 2, "weight": 3},
            "-3*(max(abs(level.error) - 0.5, 0)/2)",
        ),
        ({"track": "level", "shape": "square"}, "-(level.error*level.error)"),
        ({"settle": "level", "within": 0.1}, "-if(abs(level.error) > 0.1, 1, 0)"),
        (
            {"settle": "level", "within": 0.1, "slower_than": 0.2},
            "-if(abs(level.error) > 0.1 or abs(level - level[t]) > 0.1, 1, 0)",
        ),
        ({"limit": "flow", "max": 3, "weight": 10}, "-10*max(flow - 3, 0)"),
        ({"limit": "flow", "min": -1, "max": 3}, "-max(max(-1 - flow, flow - 3), 0)"),
        ({"when": "flow > 2", "weight": 5}, "-5*if(flow > 2, 1, 0)"),
        ({"effort": "pump", "weight": 0.01}, "-0.01*(abs(pump)/80)"),
        ({"effort": "pump", "around": 30}, "-(abs(pump - 30)/80)"),
        ({"effort": "valve"}, "-(abs(valve - 20)/80)"),
        ({"rate": "pump"}, "-(abs(pump - pump[t-1])/80)"),
    ],
    ids=str,
)
def test_the_formula_of_a_term(term: dict[str, Any], expected: str) -> None:
    expression = task_with(term).reward_expression
    assert expression is not None
    assert to_text(expression) == expected


def test_a_task_with_terms_is_the_same_when_read_again() -> None:
    task = task_with({"track": "level", "tolerance": 0.5}, {"rate": "pump", "weight": 0.1})
    assert Task.from_dict(task.model_dump(mode="json")) == task


KINDS = "expected exactly one of: track, settle, limit, when, effort, rate"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('terms = [{ track = "levl" }]', " terms[0].track: unknown state 'levl'; did you mean 'level'?"),
        (
            'terms = [{ track = "pump" }]',
            " terms[0].track: unknown state 'pump'; expected one of: level, flow",
        ),
        (
            'terms = [{ track = "flow" }]',
            " terms[0].track: flow has no setpoint: give it one in [states], as in flow = { setpoint = 0.0 }",
        ),
        ('terms = [{ trak = "level" }]', f" terms[0]: {KINDS}; did you mean 'track'?"),
        (
            'terms = [{ track = "level", effort = "pump" }]',
            f" terms[0]: {KINDS}, not track and effort",
        ),
        (
            'terms = [{ when = "flow > 1" }, { track = "level", tolerence = 1 }]',
            " terms[1]: unknown key 'tolerence'; did you mean 'tolerance'?",
        ),
        (
            'terms = [{ track = "level", tolerance = -1 }]',
            " terms[0].tolerance: expected a number, not negative",
        ),
        (
            'terms = [{ track = "level", weight = inf }]',
            " terms[0].weight: expected a number, not negative",
        ),
        ('terms = [{ track = "level", scale = 0 }]', " terms[0].scale: expected a number greater than 0"),
        (
            'terms = [{ track = "level", shape = "cube" }]',
            ' terms[0].shape: expected "absolute" or "square"',
        ),
        ("terms = [{ track = 5 }]", " terms[0].track: expected text of 1 to 200 characters"),
        ("terms = [5]", " terms[0]: expected a table"),
        ("terms = [{}]", f" terms[0]: {KINDS}"),
        ("terms = 5", " terms: expected a list"),
        ("terms = []", ": expected exactly one of: cases with otherwise, terms, expression, column"),
        (
            'terms = [{ effort = "flow" }]',
            " terms[0].effort: unknown action 'flow'; expected one of: pump, valve",
        ),
        (
            'terms = [{ effort = "pump", around = 61 }]',
            " terms[0].around: expected a number within the limits -20 … 60",
        ),
        ('terms = [{ when = "flw > 2" }]', " terms[0].when: unknown name 'flw' at column 1; did you mean"),
        ('terms = [{ when = "flow > 1, 1, 0) + if(flow > 1" }]', " terms[0].when: expected an operator"),
        ('terms = [{ limit = "level" }]', " terms[0]: expected min, max or both"),
        (
            'terms = [{ limit = "level", min = 2, max = 1 }]',
            " terms[0]: expected min not greater than max",
        ),
        ('terms = [{ settle = "level" }]', " terms[0]: missing key 'within'"),
        ('terms = [{ track = "level" }]\nfailure = "level > 2"', ": missing key 'failure_value'"),
        ('terms = [{ track = "level" }]\nfailure_value = -1', ": missing key 'failure'"),
        (
            'terms = [{ track = "level" }]\nfailure = "levl > 2"\nfailure_value = -1',
            " failure: unknown name 'levl' at column 1; did you mean 'level'?",
        ),
        (
            'column = "r"\nfailure = "level > 2"\nfailure_value = -1',
            ": failure is allowed only with terms or an expression",
        ),
        (
            'expression = "1"\nterms = [{ track = "level" }]',
            ": expected exactly one of: cases with otherwise, terms, expression, column",
        ),
    ],
)
def test_a_wrong_term_is_told_where_and_what(lines: str, expected: str) -> None:
    with pytest.raises(ClearloopError) as caught:
        Task.from_toml(TEXT + lines)
    assert str(caught.value).startswith(f"task: [reward]{expected}")


def test_a_rate_needs_a_history() -> None:
    text = TEXT.replace("history = 2", "") + 'terms = [{ rate = "pump" }]'
    with pytest.raises(ClearloopError, match=r"terms\[0\].rate: this term compares with .* set history = 2$"):
        Task.from_toml(text)


def test_an_expression_may_fail_too() -> None:
    text = TEXT + 'expression = "-abs(flow)"\nfailure = "flow > 5"\nfailure_value = -20'
    expression = Task.from_toml(text).reward_expression
    assert expression is not None
    assert to_text(expression) == "if(flow > 5, -20, -abs(flow))"
