"""What stands at the head of every export, and how people's words are made harmless in comments."""

import textwrap
from collections.abc import Iterator

import clearloop
from clearloop.controllers import Controller

WIDTH = 100
LONGEST = 2_000  # characters of one line of words; a formula may have 10,000
_HARMLESS = (("*/", "* /"), ("/*", "/ *"), ("??", "? ?"), ("\\", "/"))  # in C, `??/` and `\` join lines


def about(controller: Controller, name: str) -> list[str]:
    """Lines of words: the controller, its limits and setpoints, and how often to call it."""
    lines = [controller.name or name, "", *controller.words(), ""]
    if controller.dt:
        lines.append(f"Call it once every {controller.dt:g} s.")
    lines.append(f"Exported by clearloop {clearloop.__version__}.")
    return [harmless(line) for line in lines]


def harmless(line: str) -> str:
    """A line for a comment in any language: nothing in it ends the comment or goes unseen."""
    text = "".join(c if c.isprintable() else "?" for c in line[:LONGEST])
    for bad, good in _HARMLESS:
        while bad in text:
            text = text.replace(bad, good)
    return text.rstrip()


def commented(lines: list[str], mark: str) -> Iterator[str]:
    """As comment lines, each beginning with the mark."""
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        width = WIDTH - len(mark)
        for part in textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]:
            yield f"{mark} {part}".rstrip()


def folded(line: str, indent: str) -> str:
    """A long line of code, broken at spaces."""
    if len(indent) + len(line) <= WIDTH:
        return indent + line
    deeper = indent + " " * (len(line) - len(line.lstrip()) + 4 * (" = " in line))
    parts = textwrap.wrap(
        indent + line, WIDTH, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(parts)
