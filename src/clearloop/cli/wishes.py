"""What people write behind the options of `clearloop init`."""

import re

from clearloop.errors import ClearloopError

GOAL = re.compile(r"\s*(?P<state>.+?)(\s+at\s+(?P<value>\S+))?\s+within\s+(?P<tolerance>\S+)\s*")


def assignment(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise ClearloopError(f"{option} {text}: expected NAME=VALUE")
    return name.strip(), value.strip()


def goal_of(text: str) -> tuple[str, str | None, float]:
    """`level at 1.5 within 0.05`."""
    found = GOAL.fullmatch(text)
    tolerance = _float(found["tolerance"]) if found else None
    if found is None or tolerance is None or tolerance < 0:
        raise ClearloopError(f'--goal {text}: expected "STATE within TOLERANCE", such as "level within 0.05"')
    return found["state"], found["value"], tolerance


def velocity_of(text: str) -> tuple[str, float | None]:
    name, colon, seconds = text.rpartition(":")
    if not colon:
        return text, None
    value = _float(seconds)
    if value is None or value < 0:
        raise ClearloopError(f"--velocity {text}: expected STATE, or STATE:SECONDS of the filter")
    return name, value


def limits_of(text: str) -> tuple[str, tuple[float, float]]:
    name, value = assignment(text, "--limits")
    ends = [_float(part) for part in value.split(",")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None or not ends[0] < ends[1]:
        raise ClearloopError(f"--limits {text}: expected ACTION=LOW,HIGH, such as valve=0,100")
    return name, (ends[0], ends[1])


def positive(dt: float | None) -> float | None:
    if dt is not None and not 0 < dt < float("inf"):
        raise ClearloopError(f"--dt {dt:g}: expected seconds, more than 0")
    return dt


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
