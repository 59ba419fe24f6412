"""Task files to read and to break."""

from clearloop.task.task import read_task

CARTPOLE, _ = read_task("cartpole")
SMALL = """
name = "tank"
dt = 1.0
discount = 0.9
horizon = 50
history = 3
[states]
level = { unit = "m", setpoint = "target" }
flow = {}
[actions]
valve = { limits = [0, 1] }
[reward]
expression = "-abs(level.error) - 0.1*abs(valve - valve[t-1])"
"""
EXPRESSION = 'expression = "-abs(level.error) - 0.1*abs(valve - valve[t-1])"'
LEARNED = SMALL.replace(EXPRESSION, 'column = "r"')
GYMNASIUM = SMALL + '[plant]\ngymnasium = "Tank-v0"\n'


def edited(*changes: tuple[str, str], text: str = CARTPOLE) -> str:
    """The text with every occurrence replaced."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text
