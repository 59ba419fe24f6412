"""Identifiers: legal, each thing its own, whatever people call their states."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.exports.printer import LONGEST_C_NAME, Names, ascii_name

WORDS = st.text(min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("theta", "theta"),
        ("θ", "theta"),
        ("Ω_dot", "Omega_dot"),
        ("θ̇", "theta_dot"),
        ("ẋ_ref", "x_dot_ref"),
        ("débit", "debit"),
        ("调", "u8c03"),
        ("1st", "x_1st"),
        ("_x", "x_x"),
        ("a__b_", "a_b"),
        ("", "x_"),
    ],
)
def test_names_are_spelled_in_ascii(text: str, name: str) -> None:
    assert ascii_name(text) == name


@given(st.lists(WORDS, unique=True, max_size=30), st.booleans())
def test_every_thing_has_a_legal_name_of_its_own(words: list[str], ignore_case: bool) -> None:
    names = Names({"if", "For"}, ignore_case=ignore_case)
    given_names = [names.give(word, word) for word in words]
    assert all(
        re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) and len(name) <= LONGEST_C_NAME for name in given_names
    )
    keys = [name.lower() if ignore_case else name for name in given_names]
    assert len(set(keys)) == len(keys)
    assert not {"if", "for" if ignore_case else "For"} & set(keys)
    assert [names.give(word, "something else") for word in words] == given_names
