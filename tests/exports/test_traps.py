"""No exported text has what the open compilers for PLCs refuse, or what MISRA C objects to."""

import os

import pytest

from tests.exports.traps import KINDS, traps_of_c, traps_of_st, tried

COUNT = int(os.environ.get("CLEARLOOP_CONTROLLERS", "6"))


@pytest.mark.parametrize("kind", KINDS)
def test_random_controllers_are_in_no_trap(kind: str) -> None:
    texts = 0
    for to, text in tried(kind, COUNT):
        texts += 1
        found = list(traps_of_st(text) if to == "st" else traps_of_c(text))
        assert not found, (found[:3], text)
    assert texts > 6 * COUNT


@pytest.mark.parametrize(
    "text",
    [
        "x := 1.797E308;",
        "x := 1.0E-300;",
        "VAR_TEMP\n    fits : ARRAY [1..3] OF LREAL;\nEND_VAR\n",
        "VAR\n    k : LREAL := (0.5 * 2.0);\nEND_VAR\n",
        "FOR k := 1 TO 1 DO",
        "FOR k := 3 TO 1 DO",
        "WHILE x DO",
    ],
)
def test_the_checker_sees_traps_of_structured_text(text: str) -> None:
    assert list(traps_of_st(text))
    assert not list(traps_of_st(f"(* {text} *)".replace("\n", " ")))


@pytest.mark.parametrize(
    "text",
    [
        "    const int first = !memory->started;",
        "    memory->started = 1;",
        "    int first;\n    if (first) {",
        "    x = a*b + c;",
        "    x = b == 0.0 ? 0.0 : a;",
        "    x = (a > b && c) ? 0.0 : a;",
    ],
)
def test_the_checker_sees_traps_of_c(text: str) -> None:
    assert list(traps_of_c(text))
