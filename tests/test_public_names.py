"""`help(cl.NAME)` says what a public name is, what its arguments mean, and what comes back."""

import inspect
from dataclasses import fields, is_dataclass

import pytest
from pydantic import BaseModel

import clearloop as cl

NAMES = [name for name in cl.__all__ if name != "ClearloopError"]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(cl, name))]
FUNCTIONS = [name for name in NAMES if name not in CLASSES]


def _said(text: str, section: str) -> str:
    """A section of a docstring in Google's style: what stands indented below `Args:`, say."""
    head, found, rest = text.partition(f"{section}:\n")
    assert found, f"no {section}: in {head[:60]!r}"
    lines = rest.splitlines()
    end = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith(" ")), len(lines))
    return "\n".join(lines[:end])


def _check_arguments(text: str, function: object) -> None:
    wanted = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]  # type: ignore[arg-type]
    for name in wanted:
        assert f"    {name}: " in "\n" + _said(text, "Args"), name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take_and_give(name: str) -> None:
    function = getattr(cl, name)
    text = inspect.getdoc(function) or ""
    assert len(text.splitlines()[0]) > 20
    _check_arguments(text, function)
    if inspect.signature(function).return_annotation not in (None, "None"):
        assert _said(text, "Returns").strip()


@pytest.mark.parametrize("name", CLASSES)
def test_classes_say_what_they_are_made_of(name: str) -> None:
    of = getattr(cl, name)
    text = inspect.getdoc(of) or ""
    assert len(text.splitlines()[0]) > 20
    if is_dataclass(of):
        wanted = [field.name for field in fields(of) if not field.name.startswith("_")]
    else:
        wanted = list(of.model_fields) if issubclass(of, BaseModel) else []
    for field in wanted:
        assert f"    {field}: " in "\n" + _said(text, "Attributes"), field


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_say_what_they_do(name: str) -> None:
    of = getattr(cl, name)
    for key, value in vars(of).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if key.startswith("_") or not inspect.isfunction(function):
            continue
        text = inspect.getdoc(getattr(of, key)) or ""
        assert text, f"{name}.{key}"
        parameters = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
        if len(parameters) > 1:
            _check_arguments(text, function)
