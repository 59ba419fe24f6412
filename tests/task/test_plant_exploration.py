"""A law that chooses the actions of a batch, and names for its parts."""

from collections.abc import Mapping

import pytest

from clearloop.errors import ClearloopError
from clearloop.expression import to_text
from clearloop.task import Task
from tests.plants.kettle import KETTLE

WHERE = {"gain": 0.4, "wish": "1 - gain*warmth[t-2]", "more": "wish + 0.1*burner[t-1]"}


def explored(law: dict[str, str], where: Mapping[str, object]) -> Task:
    tables = KETTLE.model_dump(mode="json")
    return Task.from_dict({**tables, "exploration": {"law": law, "where": dict(where)}}, source="kettle.toml")


def test_what_is_named_is_put_in_its_place() -> None:
    task = explored({"burner": "more + flicker"}, WHERE)
    (law,) = task.exploration_law
    assert to_text(law) == "1 - 0.4*warmth[t-2] + 0.1*burner[t-1] + flicker"
    assert Task.from_dict(task.model_dump(mode="json")) == task


def test_without_a_law_there_is_nothing() -> None:
    assert explored({}, {}).exploration_law == ()


@pytest.mark.parametrize(
    ("law", "where", "message"),
    [
        ({"burner": "wisch"}, WHERE, "[exploration] law.burner: unknown name 'wisch' at column 1; did you"),
        ({"burner": "wish[t-1]"}, WHERE, "[exploration] law.burner: 'wish[t-1]': only the present is"),
        (
            {"burner": "burner"},
            {},
            "[exploration] law.burner: 'burner' is being chosen; read a past value, such as burner[t-1]",
        ),
        ({"burner": "a"}, {"a": "2*a"}, "[exploration] where.a: unknown name 'a' at column 3"),
        ({"burner": "a"}, {"a": "b", "b": 1.0}, "[exploration] where.a: unknown name 'b' at column 1"),
        ({"burner": "1"}, {"room": 2.0}, "[exploration] where: the name 'room' is taken already"),
        ({"burner": "1"}, {"flicker": 2.0}, "[exploration] where: the name 'flicker' is taken already"),
        ({"burner": "warmth[t-1001]"}, {}, "[exploration] law.burner: 'warmth[t-1001]' looks back too far"),
        ({"berner": "1"}, {}, "[exploration] law: unknown action 'berner'; did you mean 'burner'?"),
    ],
)
def test_a_wrong_law_is_told_where_and_what(
    law: dict[str, str], where: Mapping[str, object], message: str
) -> None:
    with pytest.raises(ClearloopError) as caught:
        explored(law, where)
    assert str(caught.value).startswith(f"kettle.toml: {message}")


def test_names_that_double_each_other_do_not_fill_the_memory() -> None:
    doubling = {"a0": "warmth", **{f"a{i + 1}": f"a{i}*a{i}" for i in range(60)}}
    with pytest.raises(ClearloopError, match=r"\[exploration\] where\.a1\d: has more than 10,000"):
        explored({"burner": "a60"}, doubling)
