"""The card of a controller, one sheet from the formula to the signatures, as HTML and as PDF."""

import base64
import json
from dataclasses import asdict
from pathlib import Path

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, to_text
from clearloop.expression.pieces import Piece
from clearloop.figures.rules import draw_rules, ranges_of
from clearloop.files import whole_file
from clearloop.numbers import number, shorten_numbers
from clearloop.pages.formulas import mathml
from clearloop.pages.operation import cautions, course, guards
from clearloop.pages.report import TEMPLATES, render
from clearloop.pages.sections import (
    Card,
    CardTable,
    Cell,
    Section,
    Subject,
    as_svg,
    costs,
    coverage,
    evidence,
    examine,
    gains,
    plant,
    robustness,
    small_deviations,
    starts,
    table,
)
from clearloop.pages.sentences import sentences
from clearloop.pages.words import Said, explain_parts
from clearloop.runs import RunDirectory

_LONGEST = 36  # characters of a term that is typeset


def contents(file: Path, run: RunDirectory) -> Card:
    """Examine the controller in a file and put together its card; this takes some seconds.

    Args:
        file: The controller file.
        run: The run that it belongs to, which gives the task, the log and the surrogate.

    Raises:
        ClearloopError: The file holds a planner, or a controller of another task.
    """
    subject = examine(file, run)
    controller, task = subject.controller, subject.task
    above = (*_warnings(subject), *cautions(subject), *_parts(subject), *_rules(subject))
    left = gains(subject), plant(subject), starts(subject), coverage(subject), guards(subject)
    right = small_deviations(subject), robustness(subject), costs(subject), course(subject)
    kind = f"{controller.kind}, complexity {controller.complexity}"
    return Card(
        title=f"Controller {subject.name}",
        kind=f"{kind} · task {task.name} · run {run.path.name}",
        name=controller.name or "",
        equations=controller.equations(),
        lines=_lines(subject),
        rows=((above,), (left, right), ((evidence(subject),),)),
    )


def _warnings(subject: Subject) -> list[Section]:
    doubts = [sentences(doubt["message"]) for doubt in subject.description.get("doubts", [])]
    title = "Learned with --force: this data cannot support a controller"
    return [Section(title, tuple(doubts))] if doubts else []


def _lines(subject: Subject) -> tuple[str, ...]:
    controller, task = subject.controller, subject.task
    units = [f"{name} in {unit}" for name, unit in controller.units.items() if unit]
    every = f"A new action every {controller.dt or task.dt:g} s"
    words = [*controller.limit_words(), *controller.setpoint_words()]
    said = [f"{', '.join(units)}." if units else "", f"{every}.", *words]
    return (" ".join(line for line in said if line),)


def _parts(subject: Subject) -> list[Section]:
    controller, found = subject.controller, []
    for action in controller.actions:
        said = list(explain_parts(controller, action, subject.experience))
        usual, long = any(one.usual for one in said), any(_is_long(one.what) for one in said)
        unit = controller.unit(action).strip()
        header = [
            "",
            "what it does",
            *([f"in most of the log{f' ({unit})' if unit else ''}"] if usual else []),
        ]
        of = f" of {action}" if len(controller.actions) > 1 else ""
        found.append(
            Section(
                f"What each part{of} does",
                table=table(
                    header,
                    [_row(one, usual) for one in said],
                    numbers=[2] if usual else [],
                    widths=["2fr" if long else "auto", "3fr", "auto"][: len(header)],
                ),
                notes=("In most of the log: the range of the part in 9 of 10 logged rows.",) if usual else (),
            )
        )
    return found


def _is_long(what: Expression | str) -> bool:
    """Return True if a formula is too long for one line of its column; it is then set as text."""
    return not isinstance(what, str) and len(to_text(what)) > _LONGEST


def _typeset(what: Expression | str) -> str | Piece:
    if isinstance(what, str):
        return what
    return shorten_numbers(to_text(what)) if _is_long(what) else Piece.of(what)


def _row(said: Said, usual: bool) -> list[str | Cell]:
    row: list[str | Cell] = [
        Cell(_typeset(said.what)),
        Cell(said.does, indent=said.level, strong=said.does.endswith(":")),
    ]
    if usual:
        row.append(" … ".join(number(end, 3) for end in said.usual) if said.usual else "")
    return row


def _rules(subject: Subject) -> list[Section]:
    if not any(subject.controller.rules()):
        return []
    figure = draw_rules(subject.controller, subject.task, ranges_of(subject.task, subject.batch))
    caption = "The membership of each rule over the logged range of each feature, and its output alone."
    return [Section("The rules", figure=as_svg(figure), caption=caption)]


# The files of a card: one page for a browser, and a PDF. The same inputs give the same bytes.


def write_card(card: Card, path: Path) -> None:
    """Write a card as HTML or PDF, by the ending of the file's name.

    Raises:
        ClearloopError: The name has another ending, or the file cannot be written.
    """
    kind = path.suffix.lower()
    if kind not in (".html", ".pdf"):
        raise ClearloopError(f"{path}: expected a name that ends in .html or .pdf")
    content = to_html(card).encode() if kind == ".html" else to_pdf(card)
    with whole_file(path) as file:
        file.write(content)


def to_html(card: Card) -> str:
    """Return a card as one HTML file with everything in it. Texts from users' files are escaped."""
    return render(TEMPLATES / "card.html", {"card": card}, mathml=mathml, picture=_picture, shares=_shares)


def to_pdf(card: Card) -> bytes:
    """Return a card as PDF. Typst sets it in its own fonts; others serve for letters that they lack."""
    import typst

    source, data = (TEMPLATES / "card.typ").read_bytes(), json.dumps(asdict(card), ensure_ascii=False)
    made = typst.compile(source, sys_inputs={"card": data}, format="pdf")
    assert isinstance(made, bytes)  # noqa: S101 - one document, not pages
    return made


def _shares(table: CardTable) -> list[int]:
    """Return the widths in percent of the columns that share the free room; 0 for all other columns."""
    parts = [float(width.removesuffix("fr")) if width != "auto" else 0.0 for width in table.widths]
    return [round(98 * part / sum(parts)) if part else 0 for part in parts]


def _picture(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
