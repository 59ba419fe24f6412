"""A log like that of a quarter of a drone: angle and motor under a PID, with jitter, in Portuguese."""

import numpy as np

STEP = 0.01
"""seconds between two rows, more or less"""
_ANGLES = (0.0, 20.0, 45.0, 30.0, 60.0, 10.0)
"""degrees that are asked for, one after the other"""
_HELD = 160
"""rows for which each is asked for"""


def drone_log(rows: int = 1600) -> str:
    """CSV: time in ms, the angle, the motor in percent of what lifts it, and the angle that is asked for."""
    rng = np.random.default_rng(5)
    angle = speed = total = stirred = 0.0
    now, lines = 12.0, ["tempo_ms,angulo_deg,u_pct,referencia"]
    for row in range(rows):
        aim = _ANGLES[row // _HELD % len(_ANGLES)]
        error = aim - angle
        total = float(np.clip(total + error * STEP, -60, 60))
        if row % 15 == 0:
            stirred = rng.normal(0, 6)  # so that the log shows what the motor does by itself
        motor = np.clip(0.6 * error + 0.8 * total - 0.25 * speed + stirred, -100, 100)
        lines.append(f"{now:.0f},{angle + rng.normal(0, 0.02):.2f},{motor:.2f},{aim:.2f}")
        now += 1000 * STEP + rng.integers(-2, 3)
        speed += STEP * (9 * motor - 200 * np.sin(np.radians(angle)) - 2.0 * speed)
        angle += STEP * speed
    return "\n".join(lines) + "\n"
