"""A search on the screen."""

import io
import sys
import time

import pytest

from clearloop.cli.model import MOST_ROWS, searching
from clearloop.controllers import Equation
from clearloop.methods import Candidate
from clearloop.runs import News


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def candidates(count: int) -> list[Candidate]:
    texts = [f"{n}.5*theta" + " + rho" * n for n in range(1, count + 1)]
    return [Candidate(Equation(outputs={"u": text}), 10.0 - n) for n, text in enumerate(texts)]


def test_on_a_terminal_a_bar_and_the_front(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with searching("gprl") as tell:
        tell(News("gprl", 0.25, 2.6111, candidates(3), False))
        tell(News("gprl", 0.5, 2.5, candidates(40), False))
        tell(News("gprl", 1.0, 2.5, candidates(40), True))
    text = terminal.getvalue()
    assert "Searching  gprl" in text
    assert "100%" in text
    assert "judging the front" in text
    last = text[text.rindex("judging the front") :]
    assert last.count("*theta") == MOST_ROWS
    assert "1.5*theta" in last
    assert "40.5*theta" in last
    assert "…" in last  # it does not fit


def test_elsewhere_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with searching("gprl") as tell:
        for share in (0.0, 0.25):
            tell(News("gprl", share, 2.6111, candidates(3), False))
            now[0] += 10
    assert capsys.readouterr().err == "Searching  gprl  25%  best 2.61, 3 controllers, 0:30 left\n"
