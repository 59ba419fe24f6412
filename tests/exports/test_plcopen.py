"""PLCopen XML: the published structure, and the same text inside."""

from pathlib import Path

import pytest
import xmlschema

from clearloop.exports.guard import OPTIONS
from clearloop.exports.spans import DOUBLE, SINGLE, Precision
from clearloop.exports.structured_text.plcopen import plcopen_xml
from clearloop.exports.structured_text.printing import pous
from clearloop.verification.st import Block
from clearloop.verification.verdict import text_of_project
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.exports.block import block_of

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).with_name("plcopen_201.xsd")))
READABLE = [name for name, controller in KINDS.items() if controller.readable]


def project(kind: str, precision: Precision = DOUBLE, *options: str) -> str:
    return plcopen_xml(pous(KINDS[kind].for_task(CARTPOLE), "test", precision, frozenset(options)))


@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize("kind", READABLE)
def test_the_structure_is_the_published_one(kind: str, precision: Precision) -> None:
    SCHEMA.validate(project(kind, precision))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('pouType="functionBlock"', 'pouType="block"'),
        (' creationDateTime="1970-01-01T00:00:00"', ""),
        ("<LREAL />", "<DOUBLE />"),
        ("<dataTypes />", ""),
        ('<variable name="theta">', "<variable>"),
    ],
)
def test_the_schema_refuses_what_is_wrong(before: str, after: str) -> None:
    good = project("pid")
    assert before in good
    assert not SCHEMA.is_valid(good.replace(before, after))


@pytest.mark.parametrize("kind", READABLE)
def test_the_text_inside_is_the_same_function(kind: str) -> None:
    ours, theirs = Block(text_of_project(project(kind))), block_of(KINDS[kind].for_task(CARTPOLE))
    assert (ours.inputs, ours.outputs) == (theirs.inputs, theirs.outputs)
    for number in range(60):
        names = [name for name in ours.inputs if name != "restart"]
        seen = {name: 0.1 * ((number * 7 + place) % 11 - 5) for place, name in enumerate(names)}
        assert ours.step(seen) == theirs.step(seen)


def test_options_have_their_inputs_in_the_interface() -> None:
    xml = project("pid", DOUBLE, *OPTIONS)
    SCHEMA.validate(xml)
    assert '<variable name="manual">' in xml
    assert Block(text_of_project(xml)).step({"theta": 0.1})["force"] > 0


def test_the_same_controller_gives_the_same_bytes() -> None:
    assert project("fuzzy") == project("fuzzy")
