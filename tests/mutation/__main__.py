"""The command: `python -m tests.mutation --mutants 400 --seed 0`."""

import argparse
import csv
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutation import running
from tests.mutation.mutants import SOURCE, Mutant, files, sample

TESTS = {  # the tests of each package, its mirror first
    "expression": ["tests/expression", "tests/exports/test_latex.py", "tests/controllers/test_equations.py"],
    "kernels": ["tests/kernels"],
    "runs": [
        "tests/runs", "tests/cli/test_damaged_runs.py", "tests/cli/test_show.py",
        "tests/figures/test_progress_tuning.py",
    ],
    "surrogate": [
        "tests/surrogate/test_quality_sums.py", "tests/surrogate/test_quality.py",
        "tests/surrogate/test_quality_verdict.py",
        "tests/surrogate/test_trust.py", "tests/surrogate/test_trust_limits.py",
        "tests/data/test_trust_logs.py",
        ],
    "diagnosis": ["tests/diagnosis", "tests/evaluation/test_linearisation_margins.py"],
    "evaluation": [
        "tests/evaluation/test_linearisation_sums.py", "tests/evaluation/test_linearisation_modes.py",
        "tests/evaluation/test_linearisation.py", "tests/evaluation/test_linearisation_margins.py",
        "tests/diagnosis/test_response_law.py",
    ],
}  # fmt: skip
JUDGED = Path(__file__).with_name("judged.csv")
LEFT_OUT = {
    "test_commands.py",
    "test_compilation.py",
    "test_robustness_coverage.py",
}  # minutes, or other processes
MOST_SECONDS = 15.0  # of the tests of one mutant, as they were traced


def main() -> int:
    """Try the mutants that have no result yet; print how many were noticed, and list the others."""
    options = _options()
    tests = {package: _test_files(places) for package, places in TESTS.items()}
    running.warm_up([test for some in tests.values() for test in some])
    options.results.parent.mkdir(parents=True, exist_ok=True)
    done = _read(options.results)
    chosen = sample(options.mutants, options.seed)
    tried = [mutant for mutant in chosen if _is_open(done.get(mutant.name), options.again)]
    with options.results.open("a") as results:
        for package, some in tests.items():
            mutants = [mutant for mutant in tried if mutant.file.startswith(f"{package}/")]
            reached = _reached(some, options.results.parent) if mutants else {}
            for mutant in mutants:
                result = done[mutant.name] = _try(mutant, reached)
                row = {"name": mutant.name, "source": _source(mutant.file), **result}
                results.write(json.dumps(row) + "\n")
                results.flush()
                print(f"{result['outcome']:9} {mutant.name}  {mutant.change}", flush=True)
    return _print_summary(chosen, done)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=400, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the same seed chooses the same mutants")
    parser.add_argument("--again", action="store_true", help="try survivors again, after tests were added")
    results = Path(tempfile.gettempdir()) / "clearloop-mutation" / "results.jsonl"
    parser.add_argument(
        "--results", type=Path, default=results, help="mutants with a result are not tried again"
    )
    return parser.parse_args()


def _is_open(result: dict[str, Any] | None, again: bool) -> bool:
    return result is None or (again and result["outcome"] == "survived")


def _test_files(places: list[str]) -> list[str]:
    found = []
    for place in places:
        path = running.ROOT / place
        found += sorted(path.glob("test_*.py")) if path.is_dir() else [path]
    return [file.relative_to(running.ROOT).as_posix() for file in found if file.name not in LEFT_OUT]


def _reached(tests: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """What every test reaches; traced again only where a file has changed."""
    sources = hashlib.sha256(b"".join((SOURCE / file).read_bytes() for file in files()))
    reached: dict[str, dict[str, Any]] = {}
    for test in tests:
        digest = sources.copy()
        digest.update((running.ROOT / test).read_bytes())
        result = folder / f"reached-{Path(test).stem}-{digest.hexdigest()[:16]}.json"
        if not result.exists():
            passed = running.trace(test, files(), result)
            print(f"traced {test}", flush=True)
            if not passed:
                result.unlink(missing_ok=True)
                sys.exit(f"{test} fails without a mutant")
        reached |= json.loads(result.read_text())
    return reached


def _try(mutant: Mutant, reached: dict[str, dict[str, Any]]) -> dict[str, Any]:
    touching = [name for name, found in reached.items() if _enters(mutant, found["lines"])]
    touching.sort(key=lambda name: float(reached[name]["seconds"]))
    seconds = 0.0
    chosen: list[str] = []
    for name in touching:
        seconds += reached[name]["seconds"]
        if seconds > MOST_SECONDS and chosen:
            break
        chosen.append(name)
    code = running.try_mutant(mutant, chosen) if chosen else running.SURVIVED
    outcome = {running.SURVIVED: "survived", running.KILLED: "killed"}.get(code, f"ended by {code}")
    return {"outcome": outcome, "change": mutant.change, "tests": len(chosen), "of": len(touching)}


def _enters(mutant: Mutant, lines: dict[str, list[int]]) -> bool:
    entered = lines.get(mutant.file, [])
    return any(mutant.first <= line <= mutant.last for line in entered) if mutant.first else bool(entered)


def _source(file: str) -> str:
    return hashlib.sha256((SOURCE / file).read_bytes()).hexdigest()[:16]


def _read(results: Path) -> dict[str, dict[str, Any]]:
    if not results.exists():
        return {}
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    sources = {file: _source(file) for file in files()}
    return {row["name"]: row for row in rows if row["source"] == sources.get(row["name"].split(":")[0])}


def _print_summary(chosen: list[Mutant], done: dict[str, dict[str, Any]]) -> int:
    outcomes = Counter(done[mutant.name]["outcome"] for mutant in chosen)
    judged = 0
    for mutant in sorted(chosen):
        if done[mutant.name]["outcome"] == "survived":
            reason = judgement(mutant)
            judged += bool(reason)
            tests = f"{done[mutant.name]['tests']} of {done[mutant.name]['of']} tests"
            print(f"survived  {mutant.name}  {mutant.change}  ({reason or tests})")
    killed, survived = len(chosen) - outcomes["survived"], outcomes["survived"]
    print(f"{dict(outcomes)}; noticed: {killed} of {len(chosen)}, {100 * killed / len(chosen):.1f} %")
    print(f"of the {survived} that survived, {judged} make no difference (judged.csv)")
    return 0


@cache
def _judgements() -> list[tuple[str, re.Pattern[str], str]]:
    with JUDGED.open(newline="", encoding="utf-8") as file:
        return [(row["file"], re.compile(row["pattern"]), row["reason"]) for row in csv.DictReader(file)]


def judgement(mutant: Mutant) -> str:
    """Return the reason why a mutant makes no difference that a test could see; empty if none is known.

    The table has patterns of the change and of its line, because numbers of lines change with every edit.
    """
    line = (SOURCE / mutant.file).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    for file, pattern, reason in _judgements():
        if file in ("*", mutant.file) and pattern.search(f"{mutant.change} | {line}"):
            return reason
    return ""


if __name__ == "__main__":
    sys.exit(main())
