"""The command: `python -m tests.fuzz --cases 10000 --seed 0`."""

import argparse
import shlex
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz import running, seeds
from tests.fuzz.case import Case
from tests.fuzz.cases import make_case


def main() -> int:
    """Run the cases; return 1 if one of them has a fault."""
    options = _options()
    running.warm_up()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name).resolve()
        good = _seeds(folder / "seeds")
        if options.case is not None:
            return _show(make_case(options.seed, options.case, good), options.keep or folder / "case")
        return _run_all(options, good, folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=300, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same cases")
    parser.add_argument(
        "--from", type=int, default=0, dest="first", help="the number of the first case, to go on"
    )
    parser.add_argument("--case", type=int, help="run only the case of this number, and show all of it")
    parser.add_argument("--keep", type=Path, help="with --case: a new folder that keeps its files")
    parser.add_argument("--family", help="only cases of this family")
    return parser.parse_args()


def _seeds(folder: Path) -> seeds.Seeds:
    """Make the good files, in processes of their own."""
    folder.mkdir()
    for arguments in seeds.commands(folder):
        ended = running.run_case(Case("seeds", arguments, {}), folder / "work")
        if ended.code:
            sys.exit(f"the good files cannot be made: {ended.err}")
    running.call_apart(lambda: seeds.write_archives(folder))
    running.call_apart(lambda: seeds.write_bench(folder))
    return seeds.load(folder)


def _run_all(options: argparse.Namespace, good: seeds.Seeds, folder: Path) -> int:
    found: dict[str, list[int]] = {}
    ends: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    slowest, largest, begun = (0.0, 0), (0, 0), time.monotonic()
    for number in range(options.first, options.cases):
        case = make_case(options.seed, number, good)
        if options.family and case.family != options.family:
            continue
        ended = running.run_case(case, folder / "case")
        ends[f"{case.family} {ended.code}"] += 1
        seconds[case.arguments[0]] += round(1000 * ended.seconds)
        slowest, largest = max(slowest, (ended.seconds, number)), max(largest, (ended.memory, number))
        for fault in running.faults(case, ended):
            found.setdefault(fault, []).append(number)
            print(f"case {number}: {fault}\n    clearloop {shlex.join(case.arguments)!r}", flush=True)
        if number % 200 == 199:
            print(
                f"{number + 1} cases, {time.monotonic() - begun:.0f} s, {len(found)} kinds of faults",
                flush=True,
            )
    print(f"Ends: {dict(sorted(ends.items()))}")
    print(f"Milliseconds: {dict(seconds.most_common())}")
    print(
        f"Most: {slowest[0]:.1f} s in case {slowest[1]}, {largest[0] / 1024**2:.0f} MiB in case {largest[1]}"
    )
    for fault, numbers in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers):5} x {fault}; first: --case {numbers[0]}")
    print(f"{options.cases - options.first} cases with the seed {options.seed}: {len(found)} kinds of faults")
    return 1 if found else 0


def _show(case: Case, folder: Path) -> int:
    """Run one case, print all of it, and keep its files if the folder is the user's."""
    folder.mkdir(parents=True)
    running.write_case(case, folder)
    ended = running.run_case(case, folder / "work")
    print(f"family {case.family}, in {folder}, log written as {case.written}, typed {case.typed!r}")
    print(f"clearloop {shlex.join(case.arguments)}")
    print(f"exit code {ended.code}, {ended.seconds:.2f} s, {ended.memory / 1024**2:.0f} MiB")
    print(f"standard output:\n{ended.out[-3_000:]}\nstandard error:\n{ended.err[-6_000:]}")
    faults = running.faults(case, ended)
    print("faults:", faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
