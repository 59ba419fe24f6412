"""Words of people in exports: whatever a name or a unit contains, it stays in its comment."""

import ast
import io
import json
import re
import subprocess
import zipfile
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from clearloop.controllers import Controller, from_json
from clearloop.errors import ClearloopError
from clearloop.exports import export
from clearloop.exports.comments import harmless
from clearloop.exports.latex import escaped
from clearloop.registry import TARGETS
from clearloop.verification.st.parsing import lexemes
from clearloop.verification.verdict import text_of_project

WORDS = [
    "*/ #error /*",
    "*\\ #error \\*",
    "*\u202e/ #error /\u200b*",
    "**//*//*/ #error",
    "??/ ??\\ ???/",
    "x *) evil := 1.0; (*",
    "*\\) (\\* evil",
    '""" + 1/0 #',
    "''' \\",
    "// evil \\",
    "coding: utf-16",
    "-*- coding=no-such-code -*-",
    "% $x$ \\input{evil} ^^M #1 & ~ _{}",
    '#set text(red) *b* _i_ `r` $x$ @y <z> "',
    "</xhtml> <evil/> &amp; ]]>",
    "{attribute 'evil'} ${evil} {0} %s",
    "\u202e\u2066evil\u2069",
    "\u200f\ufeff\u00ad\u2060",
]
ARGUMENTS = [*WORDS, "a\n*/ #error", "a\r\nevil\u2028evil\x0bevil\x85evil", "a\x00\x1b[2J", "", "*/" * 500]


def controller(words: str = "plain") -> Controller:
    """Past values, limits, a setpoint from a column, and names that must be spelled anew."""
    table = {
        "clearloop": 1,
        "kind": "equation",
        "name": words,
        "follows": {"rho": words},
        "units": dict.fromkeys(("theta", "rho", "调", "double", "force"), words[:40]),
        "limits": {"force": [-10, 10]},
        "outputs": {"force": "theta[t-2] - rho + 调*double - force[t-1]"},
    }
    return from_json(json.dumps(table))


def texts(to: str, words: str = "plain", name: str = "controller") -> dict[str, str]:
    return export(controller(words), to=to, name=name)


def st_words(text: str) -> list[tuple[str, str]]:
    return [(word.kind, word.text) for word in lexemes(text)]


def c_words(files: dict[str, str], folder: Path) -> list[str]:
    """What the preprocessor leaves of a source and its header; both compile without a warning."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    source = folder / next(iter(files))
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-trigraphs"]
    subprocess.run(["gcc", *flags, "-fsyntax-only", str(source)], check=True)
    strip = ["gcc", "-fpreprocessed", "-dD", "-E", "-P"]
    return [
        subprocess.run([*strip, str(folder / name)], check=True, capture_output=True, text=True).stdout
        for name in files
    ]


@pytest.mark.parametrize("words", WORDS)
def test_c_compiles_to_the_same(words: str, tmp_path: Path) -> None:
    assert c_words(texts("c", words), tmp_path) == c_words(texts("c"), tmp_path)


@pytest.mark.parametrize("words", WORDS)
def test_javascript_is_the_same_but_for_comments(words: str) -> None:
    (text,) = texts("javascript", words).values()
    (plain,) = texts("javascript").values()
    subprocess.run(["node", "--check", "--input-type=module", "-"], input=text, check=True, text=True)
    code = [[line for line in one.splitlines() if not line.startswith("//")] for one in (text, plain)]
    assert code[0] == code[1]


@pytest.mark.parametrize("words", WORDS)
def test_python_parses_to_the_same(words: str) -> None:
    (text,) = texts("python", words).values()
    (plain,) = texts("python").values()
    assert ast.dump(ast.parse(text.encode())) == ast.dump(ast.parse(plain.encode()))


@pytest.mark.parametrize("words", WORDS)
def test_structured_text_has_the_same_words(words: str) -> None:
    (text,) = texts("st", words).values()
    (plain,) = texts("st").values()
    assert st_words(text) == st_words(plain)
    assert text.count("(*") == text.count("*)") == plain.count("(*")


@pytest.mark.parametrize("words", WORDS)
def test_plcopen_has_the_same_elements(words: str) -> None:
    (xml,) = texts("plcopen", words).values()
    (plain,) = texts("plcopen").values()
    assert [one.tag for one in fromstring(xml).iter()] == [one.tag for one in fromstring(plain).iter()]  # noqa: S314
    assert st_words(text_of_project(xml)) == st_words(text_of_project(plain))


@pytest.mark.parametrize("words", WORDS)
def test_latex_has_no_command_of_the_words(words: str) -> None:
    (text,) = texts("latex", words).values()
    lines, (plain,) = text.splitlines(), texts("latex").values()
    while lines[0].startswith("%"):
        lines.pop(0)
    equations = [line for line in plain.splitlines() if not line.startswith("%")][:3]
    assert lines[:3] == equations
    for note in lines[3:]:
        rest = note.replace(r"\textasciitilde{}", "").replace(r"\textasciicircum{}", "")
        for sign in "&%$#_{}":
            rest = rest.replace("\\" + sign, "")
        assert not set(rest) & set("\\&%$#_{}~^")


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("words", [*WORDS, "@REALS@ @STARTS@ @TOKEN@"])
def test_an_fmu_has_the_same_code_and_elements(words: str, version: str, tmp_path: Path) -> None:
    """But for the token, which is that of its content."""
    found = []
    for name, text in (("words", words), ("plain", "plain")):
        (tmp_path / name).mkdir()
        packed = fmu_members(controller(text), version)
        sources = {one: packed[one] for one in sorted(packed) if one.endswith((".c", ".h"))}
        code = "".join(c_words({Path(one).name: code for one, code in sources.items()}, tmp_path / name))
        xml = {one: packed[one] for one in packed if one.endswith(".xml")}
        tags = [[node.tag for node in fromstring(one).iter()] for one in xml.values()]  # noqa: S314
        found.append((re.sub(r"\{[0-9a-f-]{36}\}", "TOKEN", code), list(xml), tags))
    assert found[0] == found[1]


def fmu_members(controller: Controller, version: str) -> dict[str, str]:
    with_ = ("sources-only", *(["fmi3"] if version == "3.0" else []))
    (content,) = export(controller, to="fmu", name="controller", options=with_).values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.parametrize("to", [to for to, target in TARGETS.items() if not target.built])
@pytest.mark.parametrize("words", WORDS)
def test_nothing_that_cannot_be_seen_is_printed(to: str, words: str) -> None:
    for text in texts(to, words).values():
        assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_name_of_an_export_may_be_anything(name: str, tmp_path: Path) -> None:
    """It stands in no comment where the controller has a name, so this one has none."""
    nameless = controller().model_copy(update={"name": None})
    texts = [to for to, target in TARGETS.items() if not target.built]
    files = {to: export(nameless, to=to, name=name) for to in texts}
    assert all(file.isascii() and "/" not in file for one in files.values() for file in one)
    assert len(c_words(files["c"], tmp_path)) == 2
    ast.parse(next(iter(files["python"].values())).encode())
    assert st_words(next(iter(files["st"].values())))
    assert text_of_project(next(iter(files["plcopen"].values())))


@pytest.mark.parametrize("words", [*ARGUMENTS, "*\\", "\\*", "*\\/", "/\\*", "*\x07/", "?\x07", "coding\t=x"])
def test_a_harmless_line_is_harmless(words: str) -> None:
    line = harmless(words)
    assert line.isprintable()
    assert not any(bad in line for bad in ("*/", "/*", "??", "\\", "coding:", "coding="))
    assert escaped(words).isprintable()
    assert harmless(line) == line


@pytest.mark.parametrize("name", ["a*/", "a\nb", 'a"', "a\u202eb", "a\\", "$a", "a%", "//"])
def test_states_and_actions_have_no_such_names(name: str) -> None:
    for table in ({"outputs": {name: "1"}}, {"outputs": {"u": "x"}, "derived": {name: "1"}}):
        with pytest.raises(ClearloopError):
            from_json(json.dumps({"clearloop": 1, "kind": "equation", **table}))
