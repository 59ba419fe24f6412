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
