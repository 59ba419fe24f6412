"""A studio in this process: asked directly, or over real sockets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clearloop.studio.server import Studio, make_app
from tests.studio.asking import ORIGIN, PORT, TestClient
from tests.studio.serving import Served, serving


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "runs")


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    """The studio's own page."""
    with TestClient(make_app(studio, PORT), base_url=ORIGIN, headers={"origin": ORIGIN}) as client:
        yield client


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(Studio(tmp_path / "runs")) as served:
        yield served
