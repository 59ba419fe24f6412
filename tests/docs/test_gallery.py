"""Every example of the gallery runs, draws its figure, and stands on a page with it."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import clearloop as cl

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
PAGES = ROOT / "docs" / "gallery"


@pytest.fixture(scope="module")
def models() -> dict[str, cl.Surrogate]:
    return {}


@pytest.fixture
def quick(models: dict[str, cl.Surrogate], monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs and searches are short, and examples with the same log share their model."""
    fit, learn, make_batch = cl.Surrogate.fit, cl.learn, cl.make_batch

    def make_little(task: cl.Task, *, size: int | None = None, **options: Any) -> cl.Batch:
        return make_batch(task, size=min(size or 1_000, 1_000), **options)

    def fit_once(task: cl.Task, batch: cl.Batch, **options: Any) -> cl.Surrogate:
        key = task.name + batch.fingerprint()
        if key not in models:
            models[key] = fit(task, batch, **options)
        return models[key]

    def learn_quickly(*arguments: Any, budget: int, **options: Any) -> Any:
        return learn(*arguments, budget=min(budget, 500_000), **options)

    monkeypatch.setattr(cl.Surrogate, "fit", fit_once)
    monkeypatch.setattr(cl, "learn", learn_quickly)
    monkeypatch.setattr(cl, "make_batch", make_little)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_draws_its_figure(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    figure = tmp_path / "figure.png"
    runpy.run_path(str(example))["main"](str(figure))
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_every_example_has_a_page_with_its_figure() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for example in EXAMPLES:
        page = (PAGES / f"{example.stem}.md").read_text(encoding="utf-8")
        assert f'--8<-- "examples/gallery/{example.name}"' in page
        assert f"]({example.stem}.png)" in page
        assert (PAGES / f"{example.stem}.png").exists()
        assert f"({example.stem}.md)" in index
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *(path.stem for path in EXAMPLES)}
    assert re.search(r"python examples/gallery/\w+\.py", index)
