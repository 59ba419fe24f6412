"""A card as files: one page for a browser, and a PDF. Both are the same bytes for the same inputs."""

import base64
import json
from dataclasses import asdict
from pathlib import Path

from clearloop.card.sections import Card, Table
from clearloop.errors import ClearloopError
from clearloop.files import whole_file
from clearloop.report.writing import render

PAGE = Path(__file__).parent / "page"


def write_card(card: Card, path: Path) -> None:
    """HTML or PDF, by the ending of its name."""
    kind = path.suffix.lower()
    if kind not in (".html", ".pdf"):
        raise ClearloopError(f"{path}: expected a name that ends in .html or .pdf")
    content = to_html(card).encode() if kind == ".html" else to_pdf(card)
    with whole_file(path) as file:
        file.write(content)


def to_html(card: Card) -> str:
    """One file with everything in it. What comes from users' files is escaped."""
    return render(PAGE / "card.html", {"card": card}, picture=_picture, shares=_shares)


def to_pdf(card: Card) -> bytes:
    """By Typst, whose fonts come with it; others are used only for letters that these do not have."""
    import typst

    source, data = (PAGE / "card.typ").read_bytes(), json.dumps(asdict(card), ensure_ascii=False)
    made = typst.compile(source, sys_inputs={"card": data}, format="pdf")
    assert isinstance(made, bytes)  # noqa: S101 - one document, not pages
    return made


def _shares(table: Table) -> list[int]:
    """Of columns that share what room the others leave, in percent; 0 for the others."""
    parts = [float(width.removesuffix("fr")) if width != "auto" else 0.0 for width in table.widths]
    return [round(98 * part / sum(parts)) if part else 0 for part in parts]


def _picture(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
