"""One order of arguments in the whole package: the task, then the batch."""

import ast
from collections.abc import Iterator
from pathlib import Path

import clearloop

LOGGED = ("Batch", "Log")


def functions() -> Iterator[tuple[str, list[str]]]:
    """The place of every function, and what its arguments are annotated with."""
    for file in sorted(Path(clearloop.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                kinds = [
                    ast.unparse(one.annotation or ast.Constant(None)).strip("'") for one in node.args.args
                ]
                yield f"{file.name}: {node.name}", kinds


def test_the_task_stands_before_the_batch() -> None:
    taking_both = {
        place: kinds for place, kinds in functions() if "Task" in kinds and not set(LOGGED).isdisjoint(kinds)
    }
    assert len(taking_both) > 20
    wrong = [
        place
        for place, kinds in taking_both.items()
        if kinds.index("Task") > min(kinds.index(kind) for kind in LOGGED if kind in kinds)
    ]
    assert not wrong
