"""What the page on exports shows is what its commands print."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from clearloop.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```sh\n(clearloop [^\n]+)\n```\n\n```\w*\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_is_printed(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert shown in capsys.readouterr().out


def test_every_language_is_shown() -> None:
    languages = {shlex.split(command)[-1] for command, _ in SHOWN}
    assert {"c", "javascript", "python", "latex"} <= languages
