"""What the pages show is true: their Python runs, their controllers load, their commands exist."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from clearloop.controllers import from_json
from clearloop.registry import METHODS, TARGETS
from clearloop.task import Task

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """All fences are paired first, so that the prose between two blocks is never taken for a block."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if re.fullmatch(language, name)]


def all_blocks(language: str) -> list[object]:
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, text in enumerate(blocks(page, language))
    ]


@pytest.mark.parametrize("text", all_blocks("json"))
def test_controllers_in_the_pages_load_and_fit_the_task(text: str) -> None:
    document = json.loads(text)
    if "kind" not in document:
        pytest.skip("not a controller")
    if document["kind"] == "characteristic":
        pytest.skip("a kind of another package: test_extending.py installs it")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_in_the_pages_exist(page: Path) -> None:
    from clearloop.cli.program import app

    known = _names(app)
    groups = {group.name: _names(group.typer_instance) for group in app.registered_groups}
    for line in re.findall(r"^clearloop (.+)$", "\n".join(blocks(page, "(?:sh)?")), re.MULTILINE):
        first, *rest = shlex.split(line, comments=True)
        assert first in known or (first in groups and rest[0] in groups[first]), line


def test_the_value_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    import clearloop as cl
    from tests.surrogate.models import cartpole_log

    monkeypatch.setattr(cl, "make_batch", lambda *_, **__: cartpole_log(300), raising=False)
    monkeypatch.chdir(ROOT)
    (text,) = blocks(ROOT / "docs" / "value.md", "python")
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - our own page
    assert 0 < names["value"].penalty < 31.75


def table_rows(page: str, first: str) -> dict[str, list[str]]:
    """Of the table whose head begins with a word: the cells of each row by the name in its first one."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n| {first} |")
    body = rest.split("\n\n")[0].splitlines()[2:]
    return {
        name: line.split("|")[2:-1] for line in body for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }


def test_the_page_on_methods_has_those_of_the_paper_with_their_sections() -> None:
    rows = table_rows("methods.md", "method")
    assert {name for name, method in METHODS.items() if method.section} <= set(rows) <= set(METHODS)
    for name in rows:
        assert METHODS[name].section in rows[name][0], name


def test_the_page_on_exports_says_what_targets_say_of_themselves() -> None:
    rows = table_rows("export.md", "`--to`")
    assert list(rows) == [name for name in TARGETS if name in rows]
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    for name in rows:
        target = TARGETS[name]
        assert f"`{target.endings[0]}`" in text
        assert ("all but planners" in rows[name][1]) == target.networks
