"""A finished run."""

import pytest

from clearloop.runs import RunDirectory
from tests.report.conftest import learn_pusher


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return learn_pusher(tmp_path_factory.mktemp("card"))
