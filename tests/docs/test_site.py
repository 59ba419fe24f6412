"""The site builds strictly from what is in the repository, fetches nothing, and can be read by everybody."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.accessibility import barriers
from tests.pages.browser import chromium

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_needs_no_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    fetched = re.compile(r"""<(?:script|img|iframe)[^>]+src=["']?https?:|<link[^>]+stylesheet[^>]+https?:""")
    for page in pages:
        assert not fetched.search(page.read_text(encoding="utf-8")), page.name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_have_no_serious_barriers(site: Path, scheme: str) -> None:
    with chromium() as browser:
        for width in (1400, 390):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
            page = context.new_page()
            for name in (
                "index",
                "tutorial",
                "studio",
                "results",
                "explain",
                "gallery/index",
                "api/checking",
            ):
                page.goto((site / f"{name}.html").as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                assert barriers(page) == [], name
            context.close()
