"""The PLCopen export: Structured Text in the XML format (TC6, version 2.01) that PLC environments import."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import clearloop
from clearloop.exports.guard import OPTIONS
from clearloop.exports.printer import ascii_name
from clearloop.exports.structured_text.printing import pous_of
from clearloop.exports.structured_text.units import Declaration, Pou, VarSection, harmless_words
from clearloop.exports.targets import Files, Order, Target

NAMESPACE = "http://www.plcopen.org/xml/tc6_0201"
XHTML = "http://www.w3.org/1999/xhtml"

# The format requires a time of creation. Without --date it is constant: equal controllers, equal files.
_CREATED = "1970-01-01T00:00:00"

_LISTS: dict[VarSection, tuple[str, dict[str, str]]] = {
    "VAR_INPUT": ("inputVars", {}),
    "VAR_OUTPUT": ("outputVars", {}),
    "VAR CONSTANT": ("localVars", {"constant": "true"}),
    "VAR": ("localVars", {}),
    "VAR_TEMP": ("tempVars", {}),
}


def plcopen_xml(pous: Sequence[Pou], created: str = _CREATED) -> str:
    """Return a PLCopen project of these units, named after the last one, which is the function block.

    Args:
        pous: The units.
        created: The time of creation.
    """
    project = Element("project", {"xmlns": NAMESPACE})
    header = {"companyName": "", "productName": "clearloop", "productVersion": clearloop.__version__}
    _add(project, "fileHeader", **header, creationDateTime=created)
    content = _add(project, "contentHeader", name=pous[-1].name)
    coordinates = _add(content, "coordinateInfo")
    for language in ("fbd", "ld", "sfc"):
        _add(_add(coordinates, language), "scaling", x="1", y="1")
    types = _add(project, "types")
    _add(types, "dataTypes")
    units = _add(types, "pous")
    for pou in pous:
        _pou(units, pou)
    _add(_add(project, "instances"), "configurations")
    indent(project)
    text = tostring(project, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _add(parent: Element, tag: str, **attributes: str) -> Element:
    return SubElement(parent, tag, attributes)


def _words(parent: Element, tag: str, text: str) -> None:
    """Add an element whose text is shown as it is."""
    SubElement(_add(parent, tag), "xhtml", {"xmlns": XHTML}).text = text


def _pou(parent: Element, pou: Pou) -> None:
    unit = _add(parent, "pou", name=pou.name, pouType="function" if pou.result else "functionBlock")
    interface = _add(unit, "interface")
    if pou.result:
        _add(_add(interface, "returnType"), pou.result)
    for section, (tag, attributes) in _LISTS.items():
        declared = pou.section(section)
        if declared:
            variables = SubElement(interface, tag, attributes)
            for one in declared:
                _variable(variables, one)
    _words(interface, "documentation", "\n".join(map(harmless_words, pou.words)))
    _words(_add(unit, "body"), "ST", pou.body.strip("\n"))


def _variable(parent: Element, one: Declaration) -> None:
    variable = _add(parent, "variable", name=one.name)
    kind = _add(variable, "type")
    if one.bounds:
        kind = _add(kind, "array")
        _add(kind, "dimension", lower=str(one.bounds[0]), upper=str(one.bounds[1]))
        kind = _add(kind, "baseType")
    _add(kind, one.type)
    if one.initial:
        initial = _add(variable, "initialValue")
        if one.bounds:
            values = _add(initial, "arrayValue")
            for value in one.initial:
                _add(_add(values, "value"), "simpleValue", value=value)
        else:
            _add(initial, "simpleValue", value=one.initial[0])
    if one.words:
        _words(variable, "documentation", harmless_words(one.words))


class PLCopen(Target):
    """The target `plcopen`: one XML file."""

    name, title, endings = "plcopen", "PLCopen XML", (".xml",)
    single, guards, options = True, True, OPTIONS
    verifier = "clearloop.verification.verdict:run_plcopen"

    def write(self, order: Order) -> Files:
        """Return the project."""
        text = plcopen_xml(pous_of(order), f"{order.date}T00:00:00" if order.date else _CREATED)
        return {f"{ascii_name(order.name)}.xml": text}
