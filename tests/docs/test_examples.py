"""The examples run, and say what they promise to say."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_from_a_log() -> None:
    command = [sys.executable, "examples/from_a_log.py", "3e6"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "15,000 transitions in 100 episodes" in done.stdout
    assert re.search(r"\{'pump': \d", done.stdout)
    assert re.search(
        r"by its own reward: penalty \d+\.\d+ ± .* \(tank, on the plant, 1,024 starts\)", done.stdout
    )


def test_the_log_of_the_page_on_pids(tmp_path: Path) -> None:
    log, page = tmp_path / "furnace.csv", (ROOT / "docs" / "pid.md").read_text(encoding="utf-8")
    subprocess.run([sys.executable, "examples/furnace.py", str(log)], cwd=ROOT, check=True)
    head = log.read_text(encoding="utf-8").splitlines()[:3]
    assert "\n".join(head) in page
    program = [sys.executable, "-m", "clearloop"]
    task = tmp_path / "furnace.toml"
    for words in (["init", log, "--out", task], ["tune", "--task", task, "--data", log]):
        done = subprocess.run([*program, *map(str, words)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown = [line.rstrip() for line in done.stdout.splitlines() if tmp_path.name not in line]
        wanted = [
            line for line in shown if line.startswith(("* search PI", "  present", "SP-101", "Gas valve"))
        ]
        assert len(wanted) == 2
        assert all(line in page for line in wanted), wanted
