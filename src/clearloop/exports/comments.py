"""The comments of exports: the head of every file, and the layout of comments and long lines."""

import textwrap
from collections.abc import Iterator

import clearloop
from clearloop.controllers import Controller

WIDTH = 100
_LONGEST_LINE = 2_000  # characters of one line of words; a formula may have 10,000
# The backslash comes first, because what replaces it may end a comment. In C, `??/` and `\` join lines; in
# Python, `coding:` in the first comment sets the encoding of the file.
_HARMLESS = (
    ("\\", "/"),
    ("*/", "* /"),
    ("/*", "/ *"),
    ("??", "? ?"),
    ("coding:", "coding :"),
    ("coding=", "coding ="),
)


def about(controller: Controller, name: str) -> list[str]:
    """Return the lines of the first comment: the controller, its limits and setpoints, and its time step."""
    lines = [controller.name or name, "", *controller.words(), ""]
    if controller.dt:
        lines.append(f"Call the controller once every {controller.dt:g} s.")
    lines.append(f"Exported by clearloop {clearloop.__version__}.")
    return [harmless(line) for line in lines]


def harmless(line: str) -> str:
    """Return a line for a comment in any language: nothing in it ends the comment or is invisible."""
    text = "".join(c if c.isprintable() else "?" for c in line[:_LONGEST_LINE])
    for bad, good in _HARMLESS:
        while bad in text:
            text = text.replace(bad, good)
    return text.rstrip()


def commented(lines: list[str], mark: str) -> Iterator[str]:
    """Yield comment lines, each of which begins with the mark; long lines are wrapped."""
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        width = WIDTH - len(mark)
        for part in textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]:
            yield f"{mark} {part}".rstrip()


def folded(line: str, indent: str) -> str:
    """Return an indented line of code; a long one is broken at spaces."""
    if len(indent) + len(line) <= WIDTH:
        return indent + line
    deeper = indent + " " * (len(line) - len(line.lstrip()) + 4 * (" = " in line))
    parts = textwrap.wrap(
        indent + line, WIDTH, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(parts)
