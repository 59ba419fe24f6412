"""The comments of exports: the head of every file, and the layout of comments and long lines."""

import textwrap
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

import clearloop
from clearloop.controllers import Controller
from clearloop.files import read_bytes

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


def about(
    controller: Controller, name: str, options: Collection[str] = (), origin: Collection[str] = ()
) -> list[str]:
    """Return the lines of the first comment: the controller, its limits and setpoints, and its time step.

    Args:
        controller: The controller.
        name: The name of the export, as the user gave it.
        options: The options of the export.
        origin: Lines that say what it was made from.
    """
    lines = [controller.name or name, "", *controller.words(), ""]
    if controller.dt:
        lines.append(f"Call the controller once every {controller.dt:g} s.")
    if options:
        lines.append(f"Options: {', '.join(sorted(options))}.")
    lines += origin
    lines.append(f"Exported by clearloop {clearloop.__version__}.")
    return [harmless(line) for line in lines]


_LARGEST = 256 * 1024 * 1024  # bytes of a file that is hashed


def made_from(file: Path, run: Path | None = None, card: Path | None = None) -> list[str]:
    """Return lines that say what an export was made from, with the hashes by which one finds it again.

    Args:
        file: The file of the controller.
        run: The directory of the run that it belongs to.
        card: The sign-off sheet.

    Raises:
        ClearloopError: One of the files cannot be read.
    """
    lines = [hashed("Controller file", file.name, read_bytes(file, _LARGEST))]
    if run is not None:
        lines.append(hashed(f"Run {run.resolve().name}:", "run.json", read_bytes(run / "run.json", _LARGEST)))
    if card is not None:
        lines.append(hashed("Sign-off sheet", card.name, read_bytes(card, _LARGEST)))
    return lines


def hashed(what: str, name: str, content: bytes) -> str:
    """Return a line with the SHA-256 of a file."""
    return f"{what} {name}, SHA-256 {sha256(content).hexdigest()}."


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
