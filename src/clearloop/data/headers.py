"""Names of columns as people write them: `Temperature 1 (degC)` is `temperature_1` in degrees Celsius."""

import re
from typing import NamedTuple

from clearloop.expression import is_name

TAKEN = ("time", "episode", "reward", "terminal", "from", "dt", "t")
"""Words that mean something else in task files and formulas."""

# Units that may end a name without brackets: angle_deg, u_pct, tempo_ms.
_UNITS = (
    "deg rad degC degF K ms us ns s min h Hz rpm m mm cm km kg N Nm V mV A mA W kW MW bar mbar Pa kPa MPa"
)
SUFFIXES = {unit.casefold(): unit for unit in _UNITS.split()}
SUFFIXES |= {"pct": "%", "percent": "%", "c": "degC", "sec": "s", "mps": "m/s", "kmh": "km/h", "lpm": "l/min"}
_BRACKETS = re.compile(r"^(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]{0,20})[\])]\s*$", re.DOTALL)
_LETTERS = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "%": " percent ", "°": " deg "}


class Header(NamedTuple):
    name: str
    """Without the unit."""
    unit: str
    """Empty where none is given."""


def split_header(column: str) -> Header:
    if found := _BRACKETS.match(column):
        return Header(found["name"].strip() or column, _plain_unit(found["unit"]))
    stem, _, ending = column.rpartition("_")
    if stem and ending.casefold() in SUFFIXES:
        return Header(stem, SUFFIXES[ending.casefold()])
    return Header(column, "")


def _plain_unit(unit: str) -> str:
    unit = unit.strip().replace("°", "deg").removeprefix("in ")
    return SUFFIXES.get(unit.casefold(), unit) if unit.casefold() in ("sec", "percent", "pct") else unit


def identifier(column: str) -> str:
    """A name for formulas: letters, digits and _, without the unit."""
    text = split_header(column).name
    for letter, plain in _LETTERS.items():
        text = text.replace(letter, plain)
    text = "".join(letter if f"_{letter}".isidentifier() else " " for letter in text)
    name = re.sub(r"[\s_]+", "_", text.strip()).strip("_") or "column"
    name = name if name.isidentifier() else f"x_{name}"
    if len(name) > 1:  # T stays T
        name = name.lower() if " " in text or name.isupper() else name[0].lower() + name[1:]
    return name if is_name(name) and name not in TAKEN else f"{name}_"
