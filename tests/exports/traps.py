"""A checker of exported text for what compilers for PLCs and for safe C refuse, or understand otherwise.

It reads the text with regular expressions and shares no code with the exporter.
`python -m tests.exports.traps 1000` exports so many random controllers of every readable kind.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from clearloop.errors import ClearloopError
from clearloop.exports import PRECISIONS, export
from clearloop.exports.guard import MODES, OPTIONS
from tests.controllers.kinds import CARTPOLE
from tests.controllers.kinds import KINDS as EXAMPLES
from tests.exports.controllers import controllers

_LEAST, _LARGEST = 1.1754943508222875e-38, 3.4028235677973366e38  # of REAL; the last rounds to the largest
_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w#.])\d+\.\d+(?:E[+-]?\d+)?")
_SECTION = re.compile(r"^(VAR\w*(?: CONSTANT)?)\n(.*?)^END_VAR", re.MULTILINE | re.DOTALL)
_LOOP = re.compile(r"\bFOR (\w+) := (-?\d+) TO (-?\d+)(?: BY (-?\d+))? DO")


def traps_of_st(text: str) -> Iterator[str]:
    """Yield what matiec refuses or reads otherwise."""
    code = _COMMENT.sub("", text)
    for literal in _NUMBER.findall(code):
        if float(literal) and not _LEAST <= float(literal) <= _LARGEST:
            yield f"{literal} is beyond the range of REAL"
    for section, declared in _SECTION.findall(code):
        if section == "VAR_TEMP" and "ARRAY" in declared:
            yield "an array in VAR_TEMP"
        for initial in re.findall(r":=\s*(.*?);", declared, re.DOTALL):
            if re.search(r"[*/()]", initial):
                yield f"the initial value {initial} is no literal"
    for variable, first, last, step in _LOOP.findall(code):
        if first == last:
            yield f"a loop over {variable} with a single round"
        if (int(last) < int(first)) != step.startswith("-"):
            yield f"a loop over {variable} that does not end"
    for word in ("WHILE", "REPEAT", "GOTO", "POINTER", "REF_TO"):
        if re.search(rf"\b{word}\b", code):
            yield f"{word} in the text"


_C_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def traps_of_c(text: str) -> Iterator[str]:
    """Yield what MISRA C 2012 objects to in rules 10.3, 12.1 and 14.4, as far as text shows it."""
    code = re.sub(r"^#.*$", "", _C_COMMENT.sub("", text), flags=re.MULTILINE)
    for flag in re.findall(r"\bint (\w+) = !?[\w>-]+(?:started|first)\b", code):
        yield f"10.3: the flag {flag} is an int"
    for name, value in re.findall(r"\bmemory->(started|\w+_valid) = (\w+);", code):
        if value not in ("true", "false"):
            yield f"10.3: {name} = {value}"
    for condition in re.findall(r"\b(?:if|while) \((.*?)\) \{", code, re.DOTALL):
        if re.fullmatch(r"[\w>.-]+", condition) and re.search(rf"\bint {re.escape(condition)}\b", code):
            yield f"14.4: {condition} is no condition"
    for line in re.split(r"[;{}]", code):
        yield from (f"12.1: {part}" for part in _without_brackets(line))


def _without_brackets(line: str) -> Iterator[str]:
    """Yield the parts of a statement in which operators of different precedence share a bracket."""
    if line.strip().startswith("for "):
        return
    inner = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
    text = re.sub(r"(?<=\d)e[+-]\d+", "", line).replace("->", ".")
    text = re.sub(r"^\s*(?:static |const )*\w+ \**", " ", text) if "=" in text else text
    while True:
        parts = inner.findall(text)
        for part in ",".join(parts or [text.partition(" = ")[2]]).split(","):
            ranks = {rank for rank, signs in enumerate(_RANKS) for sign in signs if f" {sign} " in part}
            ranks |= {5} if re.search(r"[\w.]\s?[*/]\s?[\w.(]", part) and "*memory" not in part else set()
            if len(ranks - {6}) > 1:
                yield part
        if not parts:
            return
        text = inner.sub("x", text)


_RANKS = (("?",), ("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "/"))


def tried(kind: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield texts of random controllers in both precisions, with and without a guard and with options.

    The kind "example" has the examples of all readable kinds, PID as blocks have it among them.
    """
    examples = [one.for_task(CARTPOLE) for one in EXAMPLES.values() if one.readable]
    made = examples if kind == "example" else controllers(kind, count, seed=3)
    for number, controller in enumerate(made):
        timed = controller.model_copy(update={"dt": 0.1})
        options = [option for k, option in enumerate(OPTIONS) if (number >> (k % 5)) & 1]
        options = [*MODES] if kind == "example" else options
        for precision in PRECISIONS:
            for to in ("st", "c"):
                ways: tuple[dict[str, Any], ...] = ({"options": options}, {}, {"without": ["guard"]})
                for words in ways:
                    with suppress(ClearloopError):  # no integral, no derivative, steps with a rate limit
                        for text in export(timed, to=to, precision=precision, **words).values():
                            assert isinstance(text, str)
                            yield to, text


KINDS = ("equation", "linear", "pid", "fuzzy", "example")


def main(count: int) -> None:
    for kind in KINDS:
        texts, found = 0, 0
        for to, text in tried(kind, count):
            texts += 1
            for trap in traps_of_st(text) if to == "st" else traps_of_c(text):
                found += 1
                print(kind, to, trap)
        print(f"{kind}: {texts:,} texts, {found} traps", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
