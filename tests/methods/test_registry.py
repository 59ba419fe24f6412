"""Methods by name."""

from dataclasses import fields, is_dataclass

import pytest

from clearloop.errors import ClearloopError
from clearloop.methods.registry import METHODS, find_method


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_known_by_its_own_name_and_needs_no_settings(name: str) -> None:
    method = find_method(name)
    assert method.name == name
    assert is_dataclass(method)
    assert method() == method()
    assert "name" not in [field.name for field in fields(method)]


def test_an_unknown_method_is_answered_with_a_suggestion() -> None:
    with pytest.raises(ClearloopError, match="no method 'GPRL'; did you mean 'gprl'"):
        find_method("GPRL")
    with pytest.raises(ClearloopError, match="no method 'magic'; the methods are: gprl, "):
        find_method("magic")
