"""The mutation tester itself: its mutants are what they say, and they reach the functions in memory."""

import ast
import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutation.__main__ import JUDGED, judgement
from tests.mutation.mutants import SOURCE, files, mutants_of, mutated, sample

ROOT = Path(__file__).parents[2]


def test_the_same_seed_chooses_the_same_mutants() -> None:
    assert sample(30, 1) == sample(40, 1)[:30]
    assert sample(30, 1) != sample(30, 2)
    every = sample(10_000, 0)
    assert len({mutant.name for mutant in every}) == len(every) > 2_000


@pytest.mark.parametrize("file", files())
def test_every_mutant_compiles_and_differs(file: str) -> None:
    before = ast.dump(ast.parse((SOURCE / file).read_text(encoding="utf-8")))
    mutants = mutants_of(file)
    for mutant in mutants[:: max(1, len(mutants) // 6)]:
        tree = mutated(mutant)
        compile(tree, file, "exec")
        assert ast.dump(tree) != before, mutant


def test_texts_for_people_are_left_alone() -> None:
    for mutant in mutants_of("runs/directory.py"):
        line = (SOURCE / mutant.file).read_text(encoding="utf-8").splitlines()[mutant.line - 1]
        assert not line.strip().startswith(("raise ", '"""')), mutant


PROGRAM = """
from clearloop.expression import FormulaError, evaluate, parse
from tests.mutation.__main__ import JUDGED, judgement
from tests.mutation.mutants import mutants_of
from tests.mutation.running import apply

(mutant,) = [one for one in mutants_of("{file}") if one.change.startswith("{change}")]
assert {before}
apply(mutant)
assert not {before}
"""


@pytest.mark.skipif("sys.platform == 'win32'", reason="limits of processes are those of Unix")
@pytest.mark.parametrize(
    ("file", "change", "before"),
    [
        ("expression/nodes.py", "a + b  →  a - b", 'evaluate(parse("1 + 2"), {}) == 3'),
        ("expression/nodes.py", "x < 0  →  x <= 0", 'evaluate(parse("sign(0)"), {}) == 0'),
        ("expression/nodes.py", "super().__init__(f", 'str(FormulaError("no", 2)) == "no at column 2"'),
    ],
)
def test_a_mutant_changes_functions_that_are_imported_already(file: str, change: str, before: str) -> None:
    program = PROGRAM.format(file=file, change=change, before=before)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_judgements_are_about_mutants_that_there_are() -> None:
    """Each row of the table meets one, and says in words why no test can see it."""
    every = [mutant for file in files() for mutant in mutants_of(file)]
    reasons = Counter(judgement(mutant) for mutant in every)
    with JUDGED.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["reason"] for row in rows} == reasons.keys() - {""}
    assert reasons[""] > 0.95 * len(every)
