"""Runs exported Structured Text on test vectors: the file is read and interpreted, as a PLC would do it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, fromstring

import numpy as np
from numpy.typing import NDArray

from clearloop.export.interpreter import Block
from clearloop.export.routine import Routine
from clearloop.verification.vectors import Episode

if TYPE_CHECKING:
    from clearloop.verification.running import Trial

_SPACES = {"": "http://www.plcopen.org/xml/tc6_0201", "x": "http://www.w3.org/1999/xhtml"}
_SECTIONS = {"inputVars": "VAR_INPUT", "outputVars": "VAR_OUTPUT", "localVars": "VAR", "tempVars": "VAR_TEMP"}


def run_structured_text(trial: "Trial") -> NDArray[np.float64]:
    """[N, A]."""
    text = (trial.folder / trial.main).read_text(encoding="utf-8")
    return run_text(text, trial.routine, trial.episodes)


def run_plcopen(trial: "Trial") -> NDArray[np.float64]:
    """[N, A]. What stands in the elements of the file is put together to a text again."""
    text = text_of_project((trial.folder / trial.main).read_text(encoding="utf-8"))
    return run_text(text, trial.routine, trial.episodes)


def run_text(text: str, routine: Routine, episodes: Sequence[Episode]) -> NDArray[np.float64]:
    """[N, A]. The block's inputs are in the order of the routine's."""
    block = Block(text)
    rows = []
    for episode in episodes:
        block.reset()
        for values in episode:
            given = [values[one.variable] for one in routine.inputs]
            answer = block.step(dict(zip(block.inputs, given, strict=False)))
            rows.append([float(answer[name]) for name in block.outputs])
    return np.array(rows, dtype=float)


def text_of_project(xml: str) -> str:
    """The Structured Text in a PLCopen file."""
    project = fromstring(xml)  # noqa: S314 - our own file
    return "\n".join(map(_unit, project.iterfind("types/pous/pou", _SPACES)))


def _unit(pou: Element) -> str:
    interface, result = _only(pou, "interface"), pou.find("interface/returnType", _SPACES)
    kind = "FUNCTION_BLOCK" if result is None else "FUNCTION"
    lines = [f"{kind} {pou.get('name')}" + ("" if result is None else f" : {_name(result[0])}")]
    for variables in interface:
        if _name(variables) in _SECTIONS:
            constant = " CONSTANT" if variables.get("constant") == "true" else ""
            lines += [_SECTIONS[_name(variables)] + constant, *map(_declaration, variables), "END_VAR"]
    return "\n".join([*lines, _only(pou, "body/ST/x:xhtml").text or "", f"END_{kind}"])


def _declaration(variable: Element) -> str:
    kind = _only(variable, "type")[0]
    text = _name(kind)
    if text == "array":
        edges = _only(kind, "dimension")
        text = f"ARRAY [{edges.get('lower')}..{edges.get('upper')}] OF {_name(_only(kind, 'baseType')[0])}"
    values = [one.get("value", "") for one in variable.iterfind("initialValue//simpleValue", _SPACES)]
    if variable.find("initialValue/arrayValue", _SPACES) is not None:
        text += f" := [{', '.join(values)}]"
    elif values:
        text += f" := {values[0]}"
    return f"{variable.get('name')} : {text};"


def _only(parent: Element, path: str) -> Element:
    found = parent.find(path, _SPACES)
    if found is None:
        raise ValueError(f"no {path} in {parent.tag}")
    return found


def _name(element: Element) -> str:
    return element.tag.partition("}")[2]
