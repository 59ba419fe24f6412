"""Long lines of code, broken where a reader would break them."""

import re
from collections.abc import Iterator

from clearloop.export.about import WIDTH

STEP = "    "
MOST_BRACKETS = 20
_BREAK = re.compile(r" (?=[-+] )| (?=AND |OR )|(?<=,) ")


def folded(line: str, indent: str) -> list[str]:
    """A long line of code, broken before signs and after commas, in as few brackets as will do."""
    room = WIDTH - len(indent) - len(STEP)
    parts = [line]
    for brackets in range(MOST_BRACKETS):
        if max(map(len, parts)) <= room:
            break
        parts = list(_parts(line, brackets))
    lines = [indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{indent}{STEP}{part}")
    return lines


def _parts(line: str, brackets: int) -> Iterator[str]:
    """The line between spaces that stand in at most so many brackets."""
    depth = start = 0
    for place, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if depth <= brackets and _BREAK.match(line, place):
            yield line[start:place]
            start = place + 1
    yield line[start:]
