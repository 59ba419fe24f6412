"""Kills `clearloop` at random moments, runs it again, and compares every file with those of an unharmed run.

    python -m tests.kills --kills 50 --seed 0 --out /tmp/kills

Each kill is SIGKILL, in turn to `learn`, `bench`, `report`, `card` and `export`. Half of them come at a
random file operation, where harm is most likely; the others come at a random time. After a kill, `learn` and
`bench` continue with --resume, and the other commands are run again. Then the folder must hold the same set
of files as after a run that nothing happened to, hidden ones included, and the same bytes in each. Only the
dates and seconds that `without_times` names may differ.

The rows go into `kills-SEED.csv`, one by one: the same command continues an unfinished campaign.
"""

import argparse
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import numpy as np
import psutil

from tests.runs.guessing import PUSHER

ROOT = Path(__file__).parents[1]
GPRL = ("gp.islands=5", "gp.population=6", "gp.offspring=6", "rounds.promoted=2")
LEARN = (
    "learn", "pusher.toml", "--method", "guess", "--method", "gprl", "--budget", "1e5", "--seed", "3",
    "--set", "guess.sizes=1", *(word for one in GPRL for word in ("--set", f"gprl.{one}")), "--out", "run",
)  # fmt: skip
BENCH = (
    "bench", "pusher.toml", "--method", "lqr", "--method", "fpsrl", "--seeds", "1", "--budget", "1e5",
    "--out", "bench",
)  # fmt: skip
EXPORT = ("export", "run/controllers/001.json", "--to", "c", "--task", "pusher.toml", "--out", "law.c")
COMMANDS = {
    "learn": (LEARN, (*LEARN, "--resume")),
    "bench": (BENCH, (*BENCH, "--resume")),
    "report": (("report", "run"), ("report", "run")),
    "card": (("card", "001", "--run", "run"), ("card", "001", "--run", "run")),
    "export": (EXPORT, EXPORT),
}
"""The words of each command, and those that continue or repeat it."""
NEEDS_RUN = ("report", "card", "export")
MOST_SECONDS = 1_200.0  # of one command
TRIES = 6  # to kill a command before it ends by itself


@dataclass(frozen=True)
class Reference:
    """A command that nothing happened to: its files are in `folder`."""

    command: str
    seconds: float
    operations: int
    """How many times it wrote, renamed, removed or made a file or a folder."""


@dataclass(frozen=True)
class Kill:
    """A row of the table."""

    number: int
    command: str
    moment: str
    files: int
    """How many files there were when the process had died."""
    outcome: str
    """`same`, or what differs."""


# What a command leaves, without the dates and seconds.


def without_times(name: str, content: bytes) -> bytes:
    """Leave out what may differ between two equal runs: the date of the run, and how long things took."""
    if name.endswith("/run.json"):
        return re.sub(rb'"begun": "[^"]*"', b'"begun"', content)
    if name.endswith(("/timing.csv", "/progress.csv")):
        rows = list(csv.DictReader(content.decode().splitlines()))
        return json.dumps(
            [{key: cell for key, cell in row.items() if key != "seconds"} for row in rows]
        ).encode()
    if name.endswith("/report.html"):
        return re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"the date", content)
    return re.sub(rb'"seconds": [\d.e-]+', b'"seconds"', content) if "/experiments/" in name else content


def left_in(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder, hidden ones included."""
    files = {
        path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()
    }
    return {name: without_times(name, path.read_bytes()) for name, path in files.items()}


def differences(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Say which files are missing, are too many, or have other bytes."""
    return [
        *(f"{name} is missing" for name in sorted(expected.keys() - found.keys())),
        *(f"{name} is too much" for name in sorted(found.keys() - expected.keys())),
        *(
            f"{name} differs"
            for name in sorted(found.keys() & expected.keys())
            if found[name] != expected[name]
        ),
    ]


# Running and killing.


class Campaign:
    """A folder with the unharmed runs, the table of kills, and the run that is being killed."""

    def __init__(self, folder: Path, seed: int, commands: tuple[str, ...] = tuple(COMMANDS)) -> None:
        self.folder, self.seed, self.commands = folder.resolve(), seed, commands
        self.table = self.folder / f"kills-{seed}.csv"
        self.folder.mkdir(parents=True, exist_ok=True)

    def kill(self, number: int) -> Kill:
        """Kill a command, let it continue, and compare. The moment follows from the seed and the number."""
        rng = np.random.default_rng([self.seed, number])
        command = self.commands[number % len(self.commands)]
        reference = self.reference(command)
        share, by_time = float(rng.uniform()), bool(number // len(self.commands) % 2)
        for _ in range(TRIES):
            work = self._prepared(command)
            if by_time:
                moment = f"{share * reference.seconds:.2f} of {reference.seconds:.2f} s"
                died = self._stop(work, command, share * reference.seconds)
            else:
                last = 1 + int(share * reference.operations)
                moment = f"operation {last} of {reference.operations}"
                died = self._run(work, COMMANDS[command][0], MORTAL_AT=str(last)) == -signal.SIGKILL
            if died:
                break
            share /= 2
        else:
            return Kill(number, command, moment, 0, "was never killed: it ends too soon")
        files = len(left_in(work))
        code = self._run(work, COMMANDS[command][1])
        found = [] if code == 0 else [f"exit code {code}"]
        found += differences(left_in(work), left_in(self.folder / command))
        return Kill(number, command, moment, files, "; ".join(found) or "same")

    def reference(self, command: str) -> Reference:
        """Run a command unharmed; once for all kills."""
        kept = self.folder / f"{command}.json"
        if not kept.exists():
            work = self._prepared(command)
            count = self.folder / "count"
            begun = time.perf_counter()
            code = self._run(work, COMMANDS[command][0], MORTAL_COUNT=str(count))
            if code:
                raise SystemExit(f"{command} ended with {code}: {(work.parent / 'said').read_text()}")
            seconds = time.perf_counter() - begun
            shutil.rmtree(self.folder / command, ignore_errors=True)
            work.rename(self.folder / command)
            kept.write_text(json.dumps(asdict(Reference(command, seconds, int(count.read_text())))))
        return Reference(**json.loads(kept.read_text()))

    def _prepared(self, command: str) -> Path:
        """Make the folder that a command starts in."""
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "pusher.toml").write_text(PUSHER)
        if command in NEEDS_RUN:
            self.reference("learn")
            self._prepared_run(work)
        return work

    def _prepared_run(self, work: Path) -> None:
        shutil.rmtree(work)
        shutil.copytree(self.folder / "learn", work)
        (work / "run" / "report.html").unlink()

    def _started(self, work: Path, words: tuple[str, ...], **environment: str) -> "subprocess.Popen[bytes]":
        with (self.folder / "said").open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.runs.mortal", *words],
                cwd=work,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
                    "COLUMNS": "80",
                    **environment,
                },
                stdout=said,
                stderr=said,
            )

    def _run(self, work: Path, words: tuple[str, ...], **environment: str) -> int:
        return self._started(work, words, **environment).wait(MOST_SECONDS)

    def _stop(self, work: Path, command: str, seconds: float) -> bool:
        """Kill a command after some time; say whether it was still there. Its workers must end with it."""
        process = self._started(work, COMMANDS[command][0])
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            workers = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
            _, alive = psutil.wait_procs(workers, timeout=60)
            if alive:
                raise SystemExit(f"{command} was killed, and its workers went on: {alive}") from None
            return True
        return False


def read_rows(table: Path) -> list[Kill]:
    """Read the kills that were done before."""
    if not table.exists():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return [
            Kill(int(row["number"]), row["command"], row["moment"], int(row["files"]), row["outcome"])
            for row in rows
        ]


def main() -> int:
    """Carry out a campaign; the exit code is 1 if anything differed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()
    campaign = Campaign(given.out, given.seed)
    rows = read_rows(campaign.table)
    for number in range(len(rows), given.kills):
        rows.append(campaign.kill(number))
        with campaign.table.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if number == 0:
                writer.writerow(field.name for field in fields(Kill))
            writer.writerow(astuple(rows[-1]))
        print(*astuple(rows[-1]), sep="  ", flush=True)
    bad = [row for row in rows if row.outcome != "same"]
    print(f"{len(rows)} kills, {len(rows) - len(bad)} ended in the same files and bytes, {len(bad)} did not")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
