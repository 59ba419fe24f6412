"""`python -m tests.exports.figures 1000 [KIND]…`: how far so many random exports of each kind are off.

C runs under the sanitizers of addresses and of undefined behaviour.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from clearloop.exports import PRECISIONS
from tests.exports.batch import SANITIZERS, Actions, Case, run_c, run_javascript, run_python
from tests.exports.controllers import KINDS
from tests.exports.test_random import cases, check

Run = Callable[[list[Case], Path], list[Actions]]


def _run_c(tried: list[Case], folder: Path) -> list[Actions]:
    return run_c(tried, folder, *SANITIZERS)


RUNS: dict[str, Run] = {
    "C": _run_c,
    "JavaScript": run_javascript,
    "Python": lambda tried, _: run_python(tried),
}


def main(count: int, kinds: tuple[str, ...]) -> None:
    print("| kind | precision | steps | left out | " + " | ".join(RUNS) + " |")
    print("|---" * (4 + len(RUNS)) + "|")
    for kind in kinds:
        for precision in PRECISIONS:
            tried = cases(kind, precision, count)
            kept = np.concatenate([case.expectation.compared for case in tried])
            runs = RUNS if precision == "double" else {"C": _run_c}
            worst = [f"{_worst(tried, run):.1g}" for run in runs.values()]
            cells = [kind, precision, f"{len(kept):,}", f"{1 - kept.mean():.1%}", *worst]
            print("| " + " | ".join([*cells, *[""] * (len(RUNS) - len(worst))]) + " |", flush=True)
            cases.cache_clear()


def _worst(tried: list[Case], run: Run) -> float:
    with TemporaryDirectory() as folder:
        answers = run(tried, Path(folder))
    check(tried, answers)
    pairs = zip(tried, answers, strict=True)
    return max(case.expectation.difference(found) for case, found in pairs)


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or tuple(KINDS))
