"""axe-core, which looks for barriers in a page that is open in a browser."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "requirements" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def barriers(page: "Page") -> list[str]:
    """The serious ones, each with its first place; skips where axe-core is not installed, but not in CI."""
    if not AXE.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs axe-core: npm ci --prefix requirements/axe")
        pytest.skip("no axe-core here")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in SERIOUS
    ]
