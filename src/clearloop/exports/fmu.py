"""The FMU export: the C export in a zip that simulators take, for co-simulation after FMI 2.0 or 3.0.

The interface of FMI is in `templates/fmu.c` and `templates/fmi2.c` or `templates/fmi3.c`; this module
describes the variables in `modelDescription.xml`, compiles for this machine if there is a compiler, and packs
it all.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from warnings import warn
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import clearloop
from clearloop.controllers.routine import Routine
from clearloop.errors import ClearloopWarning
from clearloop.exports.c import TranslationUnit, c_unit
from clearloop.exports.comments import about, harmless
from clearloop.exports.guard import OPTIONS, routine_of
from clearloop.exports.statements import gain_words, output_words
from clearloop.exports.targets import Files, Order, Target
from clearloop.files import zipped

COMPILE = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-s")
_OWN = ("fmi3", "sources-only")  # options that are not those of the block
_COMPILERS = ("gcc", "cc", "clang")
_SECONDS = 300  # that a compiler may take

Causality = Literal["input", "parameter", "output"]
Kind = Literal["real", "flag", "count"]
_TYPES = {"real": ("Real", "Float64"), "flag": ("Boolean", "Boolean"), "count": ("Integer", "Int32")}
"""What FMI 2.0 and 3.0 call them."""


@dataclass(frozen=True, kw_only=True)
class FmuVariable:
    """A variable of an FMU.

    Attributes:
        name: Its name in the simulator.
        place: The member of an instance that holds it, such as "input.theta".
        causality: What it is for: an input, a parameter that may be tuned while it runs, or an output.
        start: Its first value; None for an output, which is calculated.
        unit: Its unit.
        limits: Its least and largest value.
        words: A description.
        kind: A real number, a flag, or a count.
    """

    name: str
    place: str
    causality: Causality
    start: float | None = None
    unit: str = ""
    limits: tuple[float, float] | None = None
    words: str = ""
    kind: Kind = "real"

    @property
    def variability(self) -> str:
        """The word of FMI for when the variable may change."""
        return {"input": "continuous", "parameter": "tunable", "output": "discrete"}[self.causality]


def fmu_variables(routine: Routine, unit: TranslationUnit) -> list[FmuVariable]:
    """Return the variables of an FMU, inputs first; their places in the list are their value references."""
    found = []
    for one in routine.inputs:
        constant = one.default is not None
        found.append(
            FmuVariable(
                name=str(one.variable),
                place=f"{'memory' if constant else 'input'}.{unit.members[one.variable]}",
                causality="parameter" if constant else "input",
                start=one.default or 0.0,
                unit=one.unit,
                words=one.words or ("setpoint; may be changed between steps" if constant else ""),
                kind="flag" if one.flag else "real",
            )
        )
    found += [
        FmuVariable(
            name=str(output.action),
            place=f"output.{unit.members[output.action]}",
            causality="output",
            unit=output.unit,
            limits=output.limits,
            words=output_words(output),
        )
        for output in routine.outputs
    ]
    found += [
        FmuVariable(
            name=str(report.target),
            place=f"output.{unit.members[report.target]}",
            causality="output",
            words=report.words,
            kind="count",
        )
        for report in routine.reports
    ]
    found += [
        FmuVariable(
            name=gain.variable.name,
            place=f"memory.{unit.members[gain.variable]}",
            causality="parameter",
            start=gain.value,
            words=gain_words(gain),
        )
        for gain in routine.law.gains
    ]
    return found


def model_description(
    *,
    version: str,
    prefix: str,
    title: str,
    words: str,
    token: str,
    dt: float | None,
    variables: Sequence[FmuVariable],
) -> str:
    """Return the XML that tells a simulator what the FMU has.

    Args:
        version: "2.0" or "3.0".
        prefix: The identifier that its functions and files are named after.
        title: The name for people.
        words: A description.
        token: The identity of exactly this FMU.
        dt: Seconds from one control step to the next, if that is known.
        variables: The variables; value references are their places in this list.
    """
    old = version == "2.0"
    root = Element(
        "fmiModelDescription",
        {
            "fmiVersion": version,
            "modelName": title,
            "guid" if old else "instantiationToken": token,
            "description": words,
            "generationTool": f"clearloop {clearloop.__version__}",
            "variableNamingConvention": "flat",
        },
    )
    _add_coupling(root, prefix, dt, old=old)
    if units := sorted({harmless(one.unit) for one in variables if one.unit}):
        table = SubElement(root, "UnitDefinitions")
        for unit in units:
            SubElement(table, "Unit", name=unit)
    SubElement(root, "DefaultExperiment", {"startTime": "0.0"} | ({"stepSize": repr(dt)} if dt else {}))
    _describe(SubElement(root, "ModelVariables"), variables, old=old)
    _add_structure(root, variables, old=old)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_coupling(root: Element, prefix: str, dt: float | None, *, old: bool) -> None:
    """Say how the FMU is run; `old` is True for FMI 2.0."""
    state = "FMUstate" if old else "FMUState"
    coupling = SubElement(
        root,
        "CoSimulation",
        {
            "modelIdentifier": prefix,
            "canHandleVariableCommunicationStepSize": "true",
            f"canGetAndSet{state}": "true",
            f"canSerialize{state}": "true",
        },
    )
    if old:
        coupling.set("canNotUseMemoryManagementFunctions", "true")
        sources = SubElement(coupling, "SourceFiles")
        for name in _source_names(prefix):
            SubElement(sources, "File", name=name)
    elif dt is not None:
        coupling.set("fixedInternalStepSize", repr(dt))


def _add_structure(root: Element, variables: Sequence[FmuVariable], *, old: bool) -> None:
    """List the outputs, which are also what an initialisation computes."""
    structure = SubElement(root, "ModelStructure")
    outputs = [number for number, one in enumerate(variables) if one.causality == "output"]
    for title in ("Output", "InitialUnknown"):
        inner = SubElement(structure, f"{title}s") if old else structure
        for number in outputs:
            if old:
                SubElement(inner, "Unknown", index=str(number + 1))
            else:
                SubElement(inner, title, valueReference=str(number))


def _describe(table: Element, variables: Sequence[FmuVariable], *, old: bool) -> None:
    for number, one in enumerate(variables):
        common = {"name": one.name, "valueReference": str(number), "causality": one.causality}
        common["variability"] = one.variability
        if one.words:
            common["description"] = harmless(one.words)
        if one.causality != "input":
            common["initial"] = "calculated" if one.start is None else "exact"
        numbers = {"unit": harmless(one.unit)} if one.unit else {}
        if one.limits:
            numbers |= {"min": repr(one.limits[0]), "max": repr(one.limits[1])}
        if one.start is not None:
            numbers["start"] = str(bool(one.start)).lower() if one.kind == "flag" else repr(one.start)
        if one.kind == "flag" and one.causality == "input":
            common["variability"] = "discrete"
        if old:
            SubElement(SubElement(table, "ScalarVariable", common), _TYPES[one.kind][0], numbers)
        else:
            SubElement(table, _TYPES[one.kind][1], common | numbers)
    if not old:  # FMI 3.0 wants the time among the variables
        taken, name = {one.name for one in variables}, "time"
        while name in taken:
            name += "_"
        attributes = {"causality": "independent", "variability": "continuous"}
        SubElement(table, "Float64", {"name": name, "valueReference": str(len(variables)), **attributes})


def _source_names(prefix: str) -> tuple[str, str]:
    return f"{prefix}.c", f"{prefix}_fmu.c"


_BUILD = """<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="{prefix}">
    <SourceFileSet language="C99" compilerOptions="-ffp-contract=off">
      <SourceFile name="{first}"/>
      <SourceFile name="{second}"/>
    </SourceFileSet>
    <Library name="m" external="true"/>
  </BuildConfiguration>
</fmiBuildDescription>
"""


def glue(
    unit: TranslationUnit, variables: Sequence[FmuVariable], *, version: str, title: str, dt: float | None
) -> str:
    """Return the C source that gives a C export the functions of FMI; `@TOKEN@` stands for its identity."""
    folder = files("clearloop.exports") / "templates"
    parts = [(folder / name).read_text(encoding="utf-8") for name in ("fmu.c", f"fmi{version[0]}.c")]
    places: dict[str, list[str]] = {kind: [] for kind in _TYPES}
    for number, one in enumerate(variables):
        places[one.kind].append(f"    case {number}: return &c->{one.place};")
    if version == "3.0":
        places["real"].append(f"    case {len(variables)}: return &c->time;")
    settable = [str(number) for number, one in enumerate(variables) if one.start is not None]
    starts = [
        f"    c->{one.place} = {one.start!r};"
        for one in variables
        if one.start is not None and one.causality == "input" and one.kind == "real"
    ]
    words = {
        "TITLE": harmless(title),
        "NAME": unit.prefix,
        "SAMPLE_TIME": repr(dt or 0.0),
        "REALS": "\n".join(places["real"]),
        "FLAGS": "\n".join(places["flag"]),
        "COUNTS": "\n".join(places["count"]),
        "SETTABLE": "\n".join(f"    case {number}: return 1;" for number in settable),
        "STARTS": "\n".join(starts),
    }
    text = "".join(parts)
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def folder_name(version: str) -> tuple[str, str] | None:
    """Return the folder of the binaries of this machine in an FMU, if there is one, and their ending."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform)
    machine = {"x86_64": "x86_64", "amd64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}.get(
        platform.machine().lower()
    )
    if system is None or machine is None or sys.maxsize <= 2**32:
        return None
    ending = {"linux": ".so", "darwin": ".dylib", "windows": ".dll"}[system]
    if version == "3.0":
        return f"{machine}-{system}", ending
    if machine == "aarch64" and system != "darwin":
        return f"{machine}-{system}", ending
    return {"linux": "linux64", "darwin": "darwin64", "windows": "win64"}[system], ending


def compile_library(sources: Mapping[str, str], prefix: str, ending: str) -> bytes | None:
    """Compile sources to a shared library of this machine; None, with a warning, if that is not possible.

    Args:
        sources: The texts by file name.
        prefix: The name of the library.
        ending: The ending of its file.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        _warn("no C compiler was found (gcc, cc or clang)")
        return None
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
        inputs = [file for file in sources if file.endswith(".c")]
        command = [compiler, *COMPILE, *inputs, "-lm", "-o", prefix + ending]
        try:
            done = subprocess.run(  # noqa: S603 - a compiler on our own sources
                command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            _warn(f"{Path(compiler).name} could not be run: {error}")
            return None
        if done.returncode:
            lines = done.stderr.splitlines()
            fault = next((line for line in lines if "error" in line), "no message")
            _warn(f"{Path(compiler).name} failed: {fault}")
            return None
        return (folder / (prefix + ending)).read_bytes()


def _warn(reason: str) -> None:
    warn(
        f"the FMU has sources only, no binary: {reason}; simulators that compile sources can use it",
        ClearloopWarning,
        stacklevel=4,
    )


class FMU(Target):
    """The target `fmu`: an FMU for co-simulation, with sources and a binary for this machine."""

    name, title, endings = "fmu", "FMU", (".fmu",)
    networks, built, guards = True, True, True
    options = tuple(sorted((*OPTIONS, *_OWN)))
    verifier = "clearloop.verification.verdict:run_fmu"

    def write(self, order: Order) -> Files:
        """Return the FMU as bytes."""
        name, members = fmu_members(order)
        return {f"{name}.fmu": zipped(members)}


def fmu_members(order: Order) -> tuple[str, dict[str, bytes]]:
    """Return the name of an FMU, and the files in it, each as bytes by its path."""
    version = "3.0" if "fmi3" in order.options else "2.0"
    routine = routine_of(order.controller, order.options - {*_OWN}, guard=order.guard)
    unit = c_unit(routine, order.name, order.precision)
    title, dt = order.controller.name or order.name, order.controller.dt
    comment = about(order.controller, order.name, order.options - {*_OWN}, order.origin)
    variables = fmu_variables(routine, unit)
    first, second = _source_names(unit.prefix)
    interface = glue(unit, variables, version=version, title=title, dt=dt)
    sources = {
        first: unit.source(comment),
        f"{unit.prefix}.h": unit.header(comment),
        second: interface,
    }
    settings: dict[str, Any] = {"version": version, "prefix": unit.prefix, "title": harmless(title), "dt": dt}
    settings |= {"words": harmless(order.controller.summary), "variables": variables}
    blank = model_description(**settings, token="")
    identity = hashlib.sha256("".join([blank, *sources.values()]).encode()).hexdigest()
    token = f"{{{uuid.UUID(identity[:32])}}}"
    sources[second] = interface.replace("@TOKEN@", token)
    members = {"modelDescription.xml": model_description(**settings, token=token)}
    members |= {f"sources/{name}": text for name, text in sources.items()}
    if version == "3.0":
        build = _BUILD.format(prefix=unit.prefix, first=first, second=second)
        members["sources/buildDescription.xml"] = build
    members["documentation/index.html"] = _page(title, comment)
    packed = {name: text.encode() for name, text in members.items()}
    packed |= dict(_binary(order, version, unit.prefix, sources))
    return unit.prefix, packed


def _binary(
    order: Order, version: str, prefix: str, sources: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    if "sources-only" in order.options:
        return
    if (place := folder_name(version)) is None:
        _warn(f"FMI names no folder for {sys.platform} on {platform.machine()}")
        return
    folder, ending = place
    if (library := compile_library(sources, prefix, ending)) is not None:
        yield f"binaries/{folder}/{prefix}{ending}", library


def _page(title: str, lines: Sequence[str]) -> str:
    from html import escape

    head, body = escape(harmless(title)), "\n".join(map(escape, lines))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{head}</title>\n'
        f"<h1>{head}</h1>\n<pre>{body}</pre>\n</html>\n"
    )
