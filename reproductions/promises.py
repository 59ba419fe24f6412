"""Do promises hold? Logs of many plants, the pick that is learned from each, and what it costs on the plant.

`python -m reproductions.promises [--pairs N] [--jobs N] [--family NAME] [--again] [--show]`: by default 208
pairs of 13 families (`sketches.py`), about 9 seconds of one core each. Each pair is a line of
runs/promises/pairs.jsonl. Pairs that are there are not repeated, unless the code has changed since. The
summary is printed, and the figure written to runs/promises/promises.png.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from threadpoolctl import threadpool_limits

from clearloop.errors import ClearloopError
from clearloop.files import read_text, whole_file
from reproductions.measuring import Effort, Record, measure
from reproductions.promise_summary import draw, summarize
from reproductions.sketches import FAMILIES

FOLDER = Path("runs/promises")
PAIRS = 208  # 16 of each family: each way of logging four times
LARGEST = 256 * 1024 * 1024  # bytes of the records
ONE_THREAD = {
    "CLEARLOOP_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the arguments are those of the process unless given."""
    asked = _parser().parse_args(arguments)
    numbers = _numbers(asked)
    folder: Path = asked.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        everything = _read(folder / "pairs.jsonl")
        key = "" if asked.show or asked.stale else version()
        records = {n: record for n, record in everything.items() if key in ("", record["version"])}
        missing = [n for n in numbers if not asked.show and (asked.again or n not in records)]
        for record in _measured(missing, asked.jobs):
            everything[record["pair"]] = records[record["pair"]] = record
            _write(folder / "pairs.jsonl", everything)
            print(_line(record), flush=True)
    except ClearloopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    chosen = [records[number] for number in numbers if number in records]
    if chosen:
        print()
        print(summarize(chosen))
        figure = asked.figure or folder / "promises.png"
        draw(chosen, figure)
        print(f"\nWritten: {folder / 'pairs.jsonl'}, {figure}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m reproductions.promises", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--pairs", type=_count, default=PAIRS, metavar="N", help="the first N pairs (208)")
    parser.add_argument("--only", default="", metavar="N,N", help="only the pairs with these numbers")
    parser.add_argument(
        "--jobs", type=_count, default=2, metavar="N", help="processes of one thread each (2)"
    )
    parser.add_argument("--family", choices=tuple(FAMILIES), metavar="NAME", help=", ".join(FAMILIES))
    parser.add_argument("--again", action="store_true", help="measure again what was measured with this code")
    parser.add_argument("--stale", action="store_true", help="keep what was measured with other code")
    parser.add_argument("--show", action="store_true", help="measure nothing: show what is there")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR", help=str(FOLDER))
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help="where to write the figure (DIR/promises.png)"
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return number


def _numbers(asked: argparse.Namespace) -> list[int]:
    if asked.only:
        try:
            return [int(number) for number in asked.only.split(",")]
        except ValueError:
            _parser().error(f"--only {asked.only}: expected numbers with commas between them")
    names = tuple(FAMILIES)
    return [n for n in range(asked.pairs) if asked.family in (None, names[n % len(names)])]


def version() -> str:
    """Return a key of the code that the records depend on."""
    import clearloop

    package, here = Path(clearloop.__file__).parent, Path(__file__).parent
    own = ("sketches", "families", "measuring", "exact")
    files = [*package.rglob("*.py"), *(here / f"{name}.py" for name in own)]
    content = hashlib.sha256()
    for file in sorted(files):
        content.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return content.hexdigest()[:12]


# The records.


def _read(file: Path) -> dict[int, Record]:
    """Return the records of earlier runs by their numbers, whatever code they were measured with."""
    if not file.exists():
        return {}
    try:
        records = [json.loads(line) for line in read_text(file, LARGEST).splitlines()]
        return {record["pair"]: record for record in records if record["version"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ClearloopError(f"{file}: damaged: delete it") from error


def _write(file: Path, records: dict[int, Record]) -> None:
    with whole_file(file) as out:
        for _, record in sorted(records.items()):
            out.write(f"{json.dumps(record)}\n".encode())


def _measured(numbers: Sequence[int], jobs: int) -> Iterator[Record]:
    """Yield the record of each pair, in the order in which they are done."""
    os.environ.update({name: value for name, value in ONE_THREAD.items() if name not in os.environ})
    key = version()
    if jobs == 1 or len(numbers) < 2:
        yield from (_record(number, key) for number in numbers)
        return
    # Spawned: neither numba's threads nor those of JAX survive a fork.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_record, number, key) for number in numbers]):
            yield done.result()


def _record(number: int, key: str) -> Record:
    # Idle threads of linear algebra wait in a loop: with them, small sums take ten times as long.
    with threadpool_limits(limits=1):
        try:
            return measure(number, Effort()) | {"version": key}
        except Exception as error:  # a bug in one pair must not cost the others
            names = tuple(FAMILIES)
            said = f"{type(error).__name__}: {error}"
            return {"pair": number, "family": names[number % len(names)], "crash": said, "version": key}


def _line(record: Record) -> str:
    """Return one line about a pair."""
    if "crash" in record:
        return f"{record['pair']:>3} {record['family']:<12} CRASHED: {record['crash']}"
    start = f"{record['pair']:>3} {record['family']:<12} {record['logger']:<6}"
    if "promise" not in record:
        return f"{start} {record.get('error', 'no controller')}"
    held = "holds" if record["low"] <= record["truth"] <= record["high"] else "FAILS"
    refused = ", ".join(one["code"] for one in record["refusals"])
    promised = f"{record['promise']:8.3f} [{record['low']:.3f}, {record['high']:.3f}]"
    return f"{start} {promised} true {record['truth']:8.3f} {held}{'  refused: ' if refused else ''}{refused}"


if __name__ == "__main__":
    sys.exit(main())
