"""Names and units that are markup somewhere stay text in the card, in its PDF, and in the report."""

import json
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typst

from clearloop.expression import parse
from clearloop.expression.pieces import Piece
from clearloop.pages.card import contents, to_html, to_pdf
from clearloop.pages.report import TEMPLATES, write_report
from clearloop.pages.sections import Card, Cell, Section, table
from clearloop.runs import RunDirectory

HOSTILE = (
    '#panic("x") $ *b* _i_ `c` @r <l> // gone',  # Typst
    '[ #link("https://x.org")[y] ] /* gone',
    "</script><script>x()</script><!-- \"'>",  # HTML
    "--> ]]> {{ 7 * 7 }} {% raw %} {# gone #}",  # SVG and Jinja
    "*/ \"\"\" ''' *) (* // \\ \\end{x} %s {0} \\0",  # exports
)
"""each at most as long as a unit may be"""


class Structure(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", data))

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass(frozen=True)
class Texts:
    """What users may call things."""

    place: str
    speed: str
    push: str
    task: str
    controller: str

    @property
    def units(self) -> dict[str, str]:
        return {"place": self.place, "speed": self.speed, "push": self.push}


PLAIN = Texts("UnitOfPlace", "UnitOfSpeed", "UnitOfPush", "NameOfTask", "NameOfController")
EVIL = Texts(*HOSTILE)


def renamed(run: RunDirectory, folder: Path, texts: Texts) -> RunDirectory:
    """The same run with other units and another task's name, learned from a file of that name."""
    for path in run.path.iterdir():
        if path.name not in ("run.json", "report.html"):
            (folder / path.name).symlink_to(path)
    description = json.loads((run.path / "run.json").read_text())
    description["task"]["name"] = texts.task
    for part in ("states", "actions"):
        for name, variable in description["task"][part].items():
            variable["unit"] = texts.units[name]
    description["asked"]["data"] = [f"{texts.task}.csv"]
    made = RunDirectory(folder)
    made.write_json("run.json", description)
    return made


def named(folder: Path, texts: Texts) -> Path:
    """A controller that brings a name and units of its own."""
    law = "-place - if(place > 0.1, tanh(speed), 0.2*speed)"
    document = {"clearloop": 1, "kind": "equation", "name": texts.controller, "units": texts.units}
    file = folder / "mine.json"
    file.write_text(json.dumps(document | {"outputs": {"push": law}}))
    return file


def same_structure(found: str, plain: str) -> None:
    """Of two pages, and every text of users in the one where its plain twin is in the other."""
    odd, even = Structure(found), Structure(plain)
    assert odd.tags == even.tags
    for text, twin in zip(astuple(EVIL), astuple(PLAIN), strict=True):
        assert odd.text.count(text) == even.text.count(twin)
    assert all(unit in odd.text for unit in EVIL.units.values())


def test_a_card_has_the_same_structure_with_any_names_and_units(
    finished: RunDirectory, tmp_path: Path
) -> None:
    cards: list[Card] = []
    for texts in (EVIL, PLAIN):
        folder = tmp_path / str(len(cards))
        folder.mkdir()
        cards.append(contents(named(tmp_path, texts), renamed(finished, folder, texts)))
    same_structure(*map(to_html, cards))
    made = to_pdf(cards[0])
    assert made.startswith(b"%PDF")
    assert b"/URI" not in made
    assert b"/JavaScript" not in made


def test_a_report_has_the_same_structure_with_any_names_and_units(
    finished: RunDirectory, page: Path, tmp_path: Path
) -> None:
    found = Structure(write_report(renamed(finished, tmp_path, EVIL)).read_text(encoding="utf-8"))
    assert found.tags == Structure(page.read_text(encoding="utf-8")).tags
    assert found.tags.count(("script",)) == 1
    assert all(text in found.text for text in (*EVIL.units.values(), EVIL.task))


def glyphs(card: Card) -> int:
    """Letters that Typst draws."""
    data = json.dumps(asdict(card))
    made = typst.compile((TEMPLATES / "card.typ").read_bytes(), sys_inputs={"card": data}, format="svg")
    pages = made if isinstance(made, list) else [made]
    return sum(page.count(b"<use ") for page in pages)


SECTION = Section("s", ("l",), table(["h"], [[Cell("c")]]), notes=("n",))
CARD = Card("t", "k", "n", (), ("l",), (((SECTION,),),))
PLACES: dict[str, Callable[[str], Card]] = {
    "name": lambda text: replace(CARD, name=text),
    "line": lambda text: replace(CARD, lines=(text,)),
    "signature": lambda text: replace(CARD, signatures=(text, "b")),
    "section": lambda text: _with(replace(SECTION, title=text)),
    "sentence": lambda text: _with(replace(SECTION, lines=(text,))),
    "note": lambda text: _with(replace(SECTION, notes=(text,))),
    "header": lambda text: _with(replace(SECTION, table=table([text], [[Cell("c")]]))),
    "cell": lambda text: _with(replace(SECTION, table=table(["h"], [[Cell(text)]]))),
    "strong cell": lambda text: _with(replace(SECTION, table=table(["h"], [[Cell(text, 1, True)]]))),
    "code": lambda text: _with(replace(SECTION, table=table(["h"], [[Cell(text)]], codes=[0]))),
}


def _with(section: Section) -> Card:
    return replace(CARD, rows=(((section,),),))


@pytest.mark.parametrize("place", PLACES)
def test_typst_draws_every_letter_of_hostile_text(place: str) -> None:
    """What was taken for markup or for a comment would not be drawn."""
    make, plain = PLACES[place], glyphs(PLACES[place]("x"))
    for hostile in HOSTILE:
        assert glyphs(make(hostile)) - plain == len("".join(hostile.split())) - 1, hostile


@pytest.mark.parametrize(
    "name", ["panic", "sys", "import_", "lr", "sqrt_x", "θ", "eval_json_bytes", "x" * 60]
)
def test_names_of_typst_and_tex_are_only_names_in_a_formula(name: str) -> None:
    piece = Piece.of(parse(f"2*{name} + tanh({name}[t-1])"))
    card = replace(CARD, equations=((Piece.name(name), piece),))
    assert to_pdf(card).startswith(b"%PDF")
    assert glyphs(card) > glyphs(CARD)
    tags = {tag[0] for tag in Structure(to_html(card)).tags}
    assert tags.isdisjoint({"script", "img", "a"})
