"""Damage to files: to the values of a document, to the cells of a table, to bytes."""

import copy
import io
import json
import math
import os
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fuzz import words

Table = list[list[str]]


# Documents: what JSON and TOML have in common.


def damaged_document(rng: random.Random, document: Any, names: list[str]) -> Any:
    """A copy of a document with one to four changes, each at any place of it."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            return words.value(rng)
        holder, key = rng.choice(places)
        _change(rng, holder, key, places, names)
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a document, as what holds it and under which key; values that lie deep are left out."""
    waiting = [(document, 0)]
    while waiting:
        holder, depth = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list) and depth < 12:
                waiting.append((holder[key], depth + 1))


def _change(
    rng: random.Random, holder: Any, key: Any, places: list[tuple[Any, Any]], names: list[str]
) -> None:
    old, kind = holder[key], rng.random()
    if kind < 0.08:
        del holder[key]
    elif kind < 0.14 and isinstance(holder, dict):  # another name
        del holder[key]
        holder[rng.choice((*words.TEXTS, *names, words.damaged_text(rng, str(key))))] = old
    elif kind < 0.2:  # as another type
        holder[key] = rng.choice(([old], {"x": old}, str(old), [old] * 3))
    elif kind < 0.26:  # another value of the same document
        other, place = rng.choice(places)
        try:
            holder[key] = copy.deepcopy(other[place])
        except (KeyError, IndexError):  # removed meanwhile
            holder[key] = words.value(rng)
    elif kind < 0.5 and isinstance(old, list) and old:
        holder[key] = rng.choice((old[::-1], old * 2, old[:-1], old * 50))
    elif isinstance(old, int | float) and kind < 0.93:
        holder[key] = words.number(rng, float(old) if abs(old) < 1e300 else 1.0)
    elif isinstance(old, str) and kind < 0.5:
        holder[key] = words.formula(rng, names)
    elif isinstance(old, str) and kind < 0.9:
        holder[key] = rng.choice((words.damaged_text(rng, old), rng.choice(names)))
    else:
        holder[key] = words.value(rng)


def to_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def to_toml(document: Any) -> bytes:
    """A TOML file of one table for each table of the document; what is no TOML is written all the same."""
    if not isinstance(document, dict):
        return _inline(document).encode("utf-8", "surrogatepass")
    plain = {key: value for key, value in document.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_inline(value)}" for key, value in plain.items()]
    for key, table in document.items():
        if isinstance(table, dict):
            lines.append(f"[{_key(key)}]")
            lines += [f"{_key(name)} = {_inline(value)}" for name, value in table.items()]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _key(key: object) -> str:
    text = str(key)
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _text(text)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _text(value) if isinstance(value, str) else repr(value)


# Tables: the cells of a log or of a run's tables.


def damaged_table(rng: random.Random, table: Table) -> Table:
    """A copy of a table, whose first row is its header, with one to four changes."""
    table = [list(row) for row in table]
    for _ in range(rng.choice((1, 1, 2, 4))):
        if len(table) < 2 or not table[0]:
            return table
        rng.choice(_TABLE_CHANGES)(rng, table)
    return table


def _cell(rng: random.Random, table: Table) -> None:
    row = rng.choice(table[rng.random() < 0.9 :])
    if row:
        row[rng.randrange(len(row))] = str(rng.choice((*words.NUMBERS, *words.TEXTS)))


def _column(rng: random.Random, table: Table) -> None:
    """Write a whole column anew, mostly with numbers: this is what a log may be like."""
    column = rng.randrange(len(table[0]))
    other = rng.randrange(len(table[0]))
    one, change = str(words.number(rng, 1.0)), rng.randrange(2, 50)
    scale = rng.choice((1e-300, 1e-12, 1e12, 1e150, 1e300))

    def scaled(cell: str) -> str:
        try:
            return repr(float(cell) * scale)
        except ValueError:
            return cell

    ways: tuple[Callable[[int, list[str]], str], ...] = (
        lambda _, __: one,
        lambda _, __: "",
        lambda place, row: one if place > change else row[column],
        lambda place, row: row[column] if place > change else one,
        lambda _, row: row[other],
        lambda place, _: str(place // change),
        lambda place, _: str(place % change),
        lambda _, row: scaled(row[column]),
        lambda _, __: repr(rng.gauss(0, 1)),
        lambda _, __: rng.choice(("0", "1")),
        lambda place, _: f"2024-01-{1 + place // 1440:02d} {place // 60 % 24:02d}:{place % 60:02d}",
        lambda place, row: row[column] if place % change else one,
        lambda place, _: repr(math.sin(place / change)),
    )
    way = rng.choice(ways)
    for place, row in enumerate(table[1:]):
        if max(column, other) < len(row):
            row[column] = way(place, row)


def _rows(rng: random.Random, table: Table) -> None:
    head, body = table[0], table[1:]
    start = rng.randrange(len(body))
    some = body[start : start + rng.choice((1, 2, 10, 100))]
    kept: list[list[list[str]]] = [
        body[:start], body[start:], body[:start] + body[start + 1 :], body + some, some, body[::-1],
        sorted(body), body[::2], rng.sample(body, len(body)), [*body, ["1"]], [*body, [*body[0], "1"]], [],
        [*body[:start], [], *body[start:]], body[: rng.randint(1, 5)],
    ]  # fmt: skip
    table[:] = [head, *[list(row) for row in rng.choice(kept)]]


def _columns(rng: random.Random, table: Table) -> None:
    column, other = (rng.randrange(len(table[0])) for _ in range(2))
    kind = rng.randrange(5)
    for row in table:
        if max(column, other) >= len(row):
            continue
        if kind == 0:
            del row[column]
        elif kind == 1:
            row.insert(other, row[column])
        elif kind == 2:
            row[column], row[other] = row[other], row[column]
        elif kind == 3 and row is table[0]:
            row[column] = rng.choice((*words.TEXTS, words.damaged_text(rng, row[column])))
        elif kind == 4 and row is table[0]:
            row[column] = rng.choice(("time", "episode", "terminal", "reward", "truncated", row[other]))


_TABLE_CHANGES = (_cell, _cell, _column, _column, _column, _rows, _columns)


def to_csv(rng: random.Random, table: Table) -> bytes:
    """The table as text, now and then in another dialect or encoding."""
    separator = rng.choice((",", ",", ",", ",", ";", "\t", "|", " "))
    decimal = "," if separator == ";" and rng.random() < 0.5 else "."
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))

    def cell(text: str) -> str:
        text = text.replace(".", decimal)
        return '"' + text.replace('"', '""') + '"' if separator in text or "\n" in text else text

    text = end.join(separator.join(map(cell, row)) for row in table) + rng.choice((end, end, ""))
    encoding = rng.choice(("utf-8",) * 6 + ("utf-8-sig", "utf-16", "latin-1"))
    return text.encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")


def to_table(content: bytes) -> Table:
    return [line.split(",") for line in content.decode().splitlines()]


# What stands in the place of a file and is none.

PIPE, FOLDER, LOOP, ENDLESS = b"@ a pipe", b"@ a folder", b"@ a link to itself", b"@ a link to a device"
NO_FILES = (PIPE, FOLDER, LOOP, ENDLESS)


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or make what stands in its place."""
    if content == PIPE:
        os.mkfifo(path)
    elif content == FOLDER:
        path.mkdir()
    elif content in (LOOP, ENDLESS):
        path.symlink_to(path if content == LOOP else "/dev/zero")
    else:
        path.write_bytes(content)


# Bytes: for every file, whatever it holds.


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 5))):
        start = rng.randrange(len(content)) if content else 0
        stop = min(len(content), start + rng.choice((1, 1, 2, 4, 8, 64, 1000)))
        piece = content[start:stop]
        new = rng.choice((
            b"", piece * 2, piece[::-1], rng.randbytes(len(piece)), b"\0" * len(piece), b"\xff" * len(piece),
            bytes([(piece[0] if piece else 0) ^ 1 << rng.randrange(8)]) + piece[1:], piece * 200,
        ))  # fmt: skip
        content = content[:start] + new + content[stop:]
        if rng.random() < 0.15:
            content = content[: rng.randrange(len(content) + 1)]
    return content


def damaged_archive(rng: random.Random, content: bytes) -> bytes:
    """A zip file (an Excel file is one) with damage to one of its members, or to its list of members."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    kind = rng.random()
    if kind < 0.1:
        del members[name]
    elif kind < 0.2:
        members[rng.choice(list(members))] = members[name]
    elif kind < 0.6:
        text = members[name].decode("utf-8", "replace")
        if numbers := list(re.finditer(r"\d+", text)):
            place = rng.choice(numbers)
            text = text[: place.start()] + str(rng.choice(words.NUMBERS)) + text[place.end() :]
        members[name] = text.encode()
    else:
        members[name] = damaged_bytes(rng, members[name])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, member in members.items():
            archive.writestr(key, member)
    return buffer.getvalue()
