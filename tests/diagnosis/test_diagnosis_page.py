"""The example of the page runs, and its numbers are those of the code."""

import re
from pathlib import Path

import pytest

from clearloop.diagnosis import diagnosis, response, robustness

PAGE = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """With fewer data, members and epochs: what comes from the plant alone is the same."""
    found = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", PAGE, re.DOTALL)
    assert found is not None
    code, shown = found.groups()
    code = code.replace("rng=rng)\nsurr", "rng=rng, size=600)\nsurr").replace(
        "batch, rng=rng)\n", "batch, track=QUICK, rng=rng)\n"
    )
    exec(f"from tests.surrogate.models import QUICK\n{code}", {})  # noqa: S102 - our own page
    printed, expected = (
        [line.strip() for line in text.splitlines()] for text in (capsys.readouterr().out, shown)
    )
    for line in (0, 1, 2, 3, 5, 8, 9, 10):
        assert printed[line] == expected[line]
    assert len(printed) == len(expected)


def test_the_definitions_are_those_of_the_code() -> None:
    for text in (
        f"{robustness.CELLS} cells over",
        f"{diagnosis.LOGGED:,} logged states",
        f"by {response.SHARE:.0%} of the start box".replace("%", " %"),
        f"within ± {response.BAND:.0%} for good".replace("%", " %"),
        f"from {diagnosis.COURSES} scoring starts",
        f"than for {robustness.USUAL:.0%} of held-out".replace("%", " %"),
        f"{diagnosis.DISTURBED} scoring starts",
    ):
        assert text in PAGE
    shares = [case.noise for case in robustness.DISTURBANCES] + [
        case.gain for case in robustness.DISTURBANCES
    ]
    assert {0.01, 0.05, 0.8, 1.2} <= set(shares)
