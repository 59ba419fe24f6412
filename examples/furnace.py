"""Write a log as a historian exports it: a day of a gas furnace under a PI with moving setpoints.

Times are minutes, cells are separated by semicolons, numbers have decimal commas: the log of `docs/pid.md`.
"""

import sys
from pathlib import Path

import numpy as np

HEADER = "t [min];SP-101 (°C);TIC-101.PV [°C];Gas valve %;Auto;Gas pressure [bar]"
STEP = 1 / 3  # minutes between two rows
GAIN, SLOW, FAST, DEAD, AMBIENT = 7.5, 18.0, 3.0, 3, 25.0  # °C per %, minutes, minutes, rows, °C
KP, TI = 0.12, 8.0  # % per °C, minutes: the PI that somebody set years ago


def main(file: str = "furnace.csv") -> None:
    rng = np.random.default_rng(7)
    setpoint, integral, draught = 250.0, 30.0, 0.0
    inner = outer = GAIN * integral
    sent, lines = [integral] * (DEAD + 1), [HEADER]
    for row in range(4320):
        if row and row % 180 == 0:
            setpoint = float(rng.choice([200, 220, 250, 280, 300, 350, 400, 420]))
        draught = 0.995 * draught + rng.normal(0, 0.4)
        measured = AMBIENT + outer + rng.normal(0, 0.3)
        wanted = KP * (setpoint - measured) + integral
        valve = min(max(wanted, 0.0), 100.0)
        integral += KP * (setpoint - measured) * STEP / TI if valve == wanted else 0.0
        cells = (
            f"{row * STEP:.3f};{setpoint:.0f};{measured:.1f};{valve:.1f};1;{3.1 + rng.normal(0, 0.05):.2f}"
        )
        lines.append(cells.replace(".", ","))
        sent.append(round(valve, 1))
        for _ in range(4):
            inner += STEP / 4 * (GAIN * sent[-1 - DEAD] + draught - inner) / SLOW
            outer += STEP / 4 * (inner - outer) / FAST
    Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
