"""What the pages show is true: their Python runs, their controllers load, their commands exist."""

import json
import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from clearloop.controllers import from_json
from clearloop.task import Task

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """All fences are paired first, so that the prose between two blocks is never taken for a block."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if re.fullmatch(language, name)]


def all_blocks(language: str) -> list[object]:
    return [
        pytest.param(text, id=f"{page.name}-{number}")
        for page in PAGES
        for number, text in enumerate(blocks(page, language))
    ]


@pytest.mark.parametrize("text", all_blocks("json"))
def test_controllers_in_the_pages_load_and_fit_the_task(text: str) -> None:
    document = json.loads(text)
    if "kind" not in document:
        pytest.skip("not a controller")
    controller = from_json(text).for_task(Task.load("cartpole"))
    assert controller.complexity > 0


def test_controllers_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (text,) = blocks(ROOT / "docs" / "controllers.md", "python")
    *lines, act, evaluate = text.strip().splitlines()
    names: dict[str, object] = {}
    exec("\n".join(lines), names)  # noqa: S102 - our own page
    for line in (act, evaluate):
        code, _, shown = line.partition("  # ")
        assert repr(eval(code, names)) == shown  # noqa: S307 - our own page


@pytest.mark.parametrize("name", ["gprl", "lqr", "pid", "hardware", "none"])
def test_published_controllers_of_the_package_are_those_of_the_examples(name: str) -> None:
    ours = ROOT / "src" / "clearloop" / "published" / f"{name}.json"
    theirs = ROOT / "examples" / "published" / f"{name}.json"
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_figure_of_the_figures_page_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    (text,) = blocks(ROOT / "docs" / "figures.md", "python")
    file = tmp_path / "starts.png"
    exec(text.replace('"starts.png"', repr(str(file))), {})  # noqa: S102 - our own page
    assert file.stat().st_size > 100_000


def _names(program: Any) -> set[str]:
    return {command.name or command.callback.__name__ for command in program.registered_commands}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_pages_exist(page: Path) -> None:
    from clearloop.cli.program import app

    known = _names(app)
    groups = {group.name: _names(group.typer_instance) for group in app.registered_groups}
    for line in re.findall(r"^clearloop (.+)$", "\n".join(blocks(page, "(?:sh)?")), re.MULTILINE):
        first, *rest = shlex.split(line, comments=True)
        assert first in known or (first in groups and rest[0] in groups[first]), line


def test_the_method_of_the_extending_page_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    import clearloop as cl
    from tests.surrogate.models import QUICK, cartpole_log

    monkeypatch.setattr(cl, "make_batch", lambda *_, **__: cartpole_log(1_000), raising=False)
    method, use = blocks(ROOT / "docs" / "extending.md", "python")
    names: dict[str, Any] = {"__name__": "clearloop_page"}
    monkeypatch.setitem(sys.modules, "clearloop_page", types.ModuleType("clearloop_page"))
    exec(method, names)  # noqa: S102 - our own page
    names["track"] = QUICK
    exec(use.replace("budget=20_000_000", "budget=2_000_000, track=track"), names)  # noqa: S102
    result = names["result"]
    assert result.steps >= 2_000_000
    assert result.points[0].model.penalty < 15


def test_the_value_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    import clearloop as cl
    from tests.surrogate.models import cartpole_log

    monkeypatch.setattr(cl, "make_batch", lambda *_, **__: cartpole_log(300), raising=False)
    monkeypatch.chdir(ROOT)
    (text,) = blocks(ROOT / "docs" / "value.md", "python")
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - our own page
    assert 0 < names["value"].penalty < 31.75
