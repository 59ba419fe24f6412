"""Names of columns: their units, and names that formulas can use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.data.cells import TAKEN, identifier, split_header
from clearloop.expression import is_name

KNOWN = {
    "Temperature 1 (degC)": ("Temperature 1", "degC", "Temperature_1"),
    "angle [deg]": ("angle", "deg", "angle"),
    "Temp (°C)": ("Temp", "degC", "Temp"),
    "angulo_deg": ("angulo", "deg", "angulo"),
    "u_pct": ("u", "%", "u"),
    "Heater 1 (%)": ("Heater 1", "%", "Heater_1"),
    "Time (sec)": ("Time", "s", "Time_"),
    "theta_dot": ("theta_dot", "", "theta_dot"),
    "plantInput": ("plantInput", "", "plantInput"),
    "FT-101": ("FT-101", "", "FT_101"),
    "2nd level": ("2nd level", "", "x_2nd_level"),
    "Füllstand [m]": ("Füllstand", "m", "Fuellstand"),
    "Y Gasventil %": ("Y Gasventil", "%", "Y_Gasventil"),
    "Temp °C": ("Temp", "degC", "Temp"),
    "Q1": ("Q1", "", "Q1"),
    "Tc": ("Tc", "", "Tc"),
    "sin": ("sin", "", "sin_"),
    "(%)": ("(%)", "%", "percent"),
    "": ("", "", "column"),
}


@pytest.mark.parametrize("column", KNOWN)
def test_headers_of_logs(column: str) -> None:
    name, unit, short = KNOWN[column]
    assert split_header(column) == (name, unit)
    assert identifier(column) == short


@given(st.text(max_size=30))
def test_every_header_gives_a_name(column: str) -> None:
    name = identifier(column)
    assert is_name(name)
    assert name not in TAKEN
