"""Lines and tables that fit the terminal, and progress where there is none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.cli.terminal import echo, print_table, progress, say, wrapped
from clearloop.expression import to_text
from tests.expression.strategies import expressions


def said(text: str, width: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        say(text)
    return capsys.readouterr().out.splitlines()


def test_a_formula_goes_on_with_its_sign(capsys: pytest.CaptureFixture[str]) -> None:
    text = "force = 69.8*theta + 20*theta_dot - 10*rho + if(theta > 0.1 and rho < 2, rho_dot, 0)"
    assert said(text, 80, capsys) == [
        "force = 69.8*theta + 20*theta_dot - 10*rho + if(theta > 0.1 and rho < 2,",
        "    rho_dot, 0)",
    ]
    assert said(text, 32, capsys) == [
        "force = 69.8*theta",
        "    + 20*theta_dot - 10*rho",
        "    + if(theta > 0.1 and rho",
        "    < 2, rho_dot, 0)",
    ]


def test_products_without_blanks_are_cut_before_a_sign(capsys: pytest.CaptureFixture[str]) -> None:
    text = "  u = alpha**2*beta*gamma/(delta*epsilon)"
    assert said(text, 24, capsys) == ["  u = alpha**2*beta", "      *gamma/(delta", "      *epsilon)"]
    assert said("u = " + "a" * 50, 24, capsys) == ["u = " + "a" * 50]


def test_what_fits_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("short", "  per step  10 * 0.95", "x" * 80):
        assert said(text, 80, capsys) == [text]


@given(tree=expressions("number", 4), width=st.integers(30, 90))
def test_no_sign_is_lost(tree, width) -> None:  # type: ignore[no-untyped-def]
    text = to_text(tree)
    lines = wrapped(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_what_must_stay_together_does() -> None:
    assert wrapped("a + b  <-\0pick", 10) == ["a + b", "    <- pick"]
    assert wrapped("1*x; 2*y", 20, indent="") == ["1*x; 2*y"]


def test_tables_are_no_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(
        ("name", "number", "found"), [("a", "1.5", "words " * 20), ("[bold]b", "-10.25", "θ")], right=(1,)
    )
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 40
    assert lines[0] == "name     number  found"
    assert lines[1].startswith("a           1.5  words words")
    assert lines[-1] == "[bold]b  -10.25  θ"


def test_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress("Learning") as tell:
        for share in (0.1, 0.2, 0.3, 0.4):
            now[0] += 2
            tell(share, f"best {share}")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Learning  30%  best 0.3, 0:14 left\n"


def test_progress_that_goes_on_tells_the_time_from_its_own_pace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress("Searching") as tell:
        for share in (0.5, 0.6, 1.0):
            tell(share, "best 2")
            now[0] += 60
        tell(1.0, "judging")
    assert capsys.readouterr().err.splitlines() == [
        "Searching  60%  best 2, 4:00 left",
        "Searching  100%  best 2",
        "Searching  100%  judging",
    ]


ESCAPES = "a\x1b]0;title\x07b\x9b31m\x85c\u202ed\re"


def test_no_text_reaches_the_terminal_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    echo(ESCAPES)
    echo(ESCAPES, err=True)
    say(ESCAPES)
    print_table((ESCAPES, "x"), [(ESCAPES, ESCAPES)])
    for text in capsys.readouterr():
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "a\\x1b]0;title\\x07b\\x9b31m" in text
