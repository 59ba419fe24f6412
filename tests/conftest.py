"""Hypothesis measures no time, and files of few but long tests run first.

On a busy machine an example of hypothesis may take longer than its usual 200 ms. Files are handed out whole
to the processes of `make test`; one that takes a minute must not be the last, while the other cores wait.
"""

import os

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does: each process has a core

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

LONG = (
    "cli/test_bench.py", "test_kills.py", "fuzz/test_fuzz.py", "test_wheel.py", "kernels/test_compilation.py",
    "cli/test_resume.py", "studio/page/", "diagnosis/test_robustness_coverage.py", "runs/test_commands.py",
    "docs/", "cli/test_report.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of long files first; the others keep their order."""
    items.sort(key=lambda item: not any(part in item.path.as_posix() for part in LONG))
