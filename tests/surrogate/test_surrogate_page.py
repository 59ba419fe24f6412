import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "surrogate.md").read_text(encoding="utf-8")


def test_the_example_runs_and_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With fewer data, members and epochs, so that it takes seconds."""
    found = re.search(r"```python\n(.*?)```\n\n    (Surrogate of .*?)\n", PAGE, re.DOTALL)
    assert found is not None
    code, shown = found.groups()
    code = (
        code.replace("import BEST,", "import")
        .replace("track=BEST", "track=QUICK")
        .replace("rng=rng)  #", "rng=rng, size=600)  #")
    )
    monkeypatch.chdir(tmp_path)
    exec(f"from tests.surrogate.models import QUICK\n{code}", {})  # noqa: S102 - our own page
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == shown.replace("10 members", "3 members")
    assert printed[1] in ("good", "fair", "poor")
    assert (tmp_path / "runs/model/surrogate/surrogate.json").exists()


def test_the_limits_of_the_verdict_are_those_of_the_page() -> None:
    from clearloop.surrogate import quality

    def percents(limits: tuple[float, float]) -> str:
        return " | ".join(f"{100 * limit:g} %" for limit in limits)

    for line, limits in (
        ("one step", percents(quality.UNEXPLAINED)),
        ("ten steps", " | ".join(f"{limit:g}" for limit in quality.DRIFT_SOON)),
        ("to the end", f"{quality.DRIFT_AT_THE_END[0]:g} | any"),
        ("reward", percents(quality.WRONG_REWARDS)),
        ("failures", percents(quality.MISSED)),
        ("false alarms", percents(quality.FALSE_ALARMS)),
    ):
        assert re.search(rf"^\| {line} \|.*\| {re.escape(limits)} \|$", PAGE, re.MULTILINE), line
