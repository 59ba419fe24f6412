"""Task files that are broken, odd or meant to do harm."""

from tests.task.texts import EXPRESSION, SMALL, edited

MEGABYTE = 2**20


def small(old: str, new: str) -> bytes:
    return edited((old, new), text=SMALL).encode()


def cart(old: str, new: str) -> bytes:
    return edited((old, new)).encode()


def reward(lines: str) -> bytes:
    return small(EXPRESSION, lines)


WHERE = "g = 9.81"
DOUBLING = 'a0 = "theta"\ng = 1\n' + "\n".join(f'a{i + 1} = "a{i}*a{i}"' for i in range(99))
FAILURE = '{ when = "level > 1", value = 1, failure = true },'
STATES = 'level = { unit = "m", setpoint = "target" }'
TASKS: dict[str, bytes] = {
    # What is no TOML
    "empty": b"",
    "only a comment": b"# nothing\n",
    "only spaces": b" \n\t\r\n",
    "binary junk": bytes(range(256)) * 40,
    "an image": b"\x89PNG\r\n\x1a\n" + b"\0" * 500,
    "a zip file": b"PK\x03\x04" + b"\0" * 500,
    "NUL bytes": b"name = 'x'\0\n",
    "UTF-16": SMALL.encode("utf-16"),
    "UTF-32": SMALL.encode("utf-32"),
    "Latin-1": small('unit = "m"', 'unit = "m"').replace(b'"m"', "'°C'".encode("latin-1")),
    "half a character": SMALL.encode() + "θ".encode()[:1],
    "JSON": b'{"name": "tank", "dt": 1.0}',
    "CSV": b"theta,rho\n0,0\n",
    "YAML": b"name: tank\ndt: 1.0\n",
    "HTML": b"<!DOCTYPE html><html></html>",
    "cut in a string": SMALL.encode()[:12],
    "cut in a table": SMALL[: SMALL.index("setpoint") + 4].encode(),
    "10 MB": b"#" * (10 * MEGABYTE),
    "10 MB in a string": b'name = "' + b"x" * (10 * MEGABYTE) + b'"',
    "lists in lists": b"a = " + b"[" * 50_000,
    "tables in tables": b"a = " + b"{b=" * 20_000,
    "dots": b"[" + b".".join([b"a"] * 10_000) + b"]",
    "a huge whole number": small("horizon = 50", "horizon = " + "9" * 10_000),
    "a date for a number": small("dt = 1.0", "dt = 1979-05-27"),
    "no escape": small('name = "tank"', r'name = "\x"'),
    "carriage returns in a string": small('name = "tank"', 'name = "ta\rnk"'),
    "twice the same key": small("dt = 1.0", "dt = 1.0\ndt = 2.0"),
    "twice the same table": SMALL.encode() + b"[states]\nx = {}\n",
    "twice the same state": small("flow = {}", "flow = {}\nflow = {}"),
    # What is TOML, and no task
    "an unknown key": small("discount", "discuont"),
    "an unknown table": SMALL.encode() + b"[reactor]\nx = 1\n",
    "a key that is a terminal's command": SMALL.encode() + b'"\\u001b[31mred" = 1\n',
    "a key of a megabyte": b"x" * (200 * 1024) + b" = 1\n",
    "a list for a file": b"[[states]]\nx = {}\n",
    "dt is NaN": small("dt = 1.0", "dt = nan"),
    "dt is infinite": small("dt = 1.0", "dt = inf"),
    "dt is negative": small("dt = 1.0", "dt = -1.0"),
    "dt is text": small("dt = 1.0", 'dt = "1"'),
    "dt is true": small("dt = 1.0", "dt = true"),
    "dt overflows": small("dt = 1.0", "dt = 1e999"),
    "discount above 1": small("discount = 0.9", "discount = 1.0000001"),
    "horizon is huge": small("horizon = 50", "horizon = 10000000"),
    "horizon is a fraction": small("horizon = 50", "horizon = 50.0"),
    "history is huge": small("history = 3", "history = 100000"),
    "name is empty": small('name = "tank"', 'name = ""'),
    "name is a list": small('name = "tank"', 'name = ["tank"]'),
    "no states": small(f"{STATES}\nflow = {{}}", ""),
    "states is a number": b"states = 5\n" + SMALL.replace("[states]", "[plant.where]").encode(),
    "a state is a number": small("flow = {}", "flow = 1"),
    "a state named like a function": small("flow = {}", "sin = {}"),
    "a state with a space": small("flow = {}", '"flow rate" = {}'),
    "a state without a name": small("flow = {}", '"" = {}'),
    "a state of line breaks": small("flow = {}", '"a\\nb\\u2028c" = {}'),
    "a thousand states": small("flow = {}", "\n".join(f"s{i} = {{}}" for i in range(1_000))),
    "an action named like a state": small("valve =", "flow ="),
    "a setpoint is NaN": small('setpoint = "target"', "setpoint = nan"),
    "a setpoint is a table": small('setpoint = "target"', "setpoint = { x = 1 }"),
    "limits the wrong way": small("[0, 1]", "[1, 0]"),
    "limits that are equal": small("[0, 1]", "[1, 1]"),
    "limits of one": small("[0, 1]", "[1]"),
    "limits of NaN": small("[0, 1]", "[nan, 1]"),
    "limits too far apart": small("[0, 1]", "[-1.7e308, 1.7e308]"),
    "a step that does not fit": small("[0, 1]", "[0, 1], step = 0.3"),
    "a step beyond the limits": small("[0, 1]", "[0, 1], step = 2"),
    "a step of nothing": small("[0, 1]", "[0, 1], step = 0"),
    "a tiny step": small("[0, 1]", "[0, 1], step = 1e-300"),
    "steps whose count overflows": small("[0, 1]", "[0, 1e308], step = 1e307"),
    # Formulas
    "an unknown name": reward('expression = "-abs(levle)"'),
    "Python": reward("expression = \"__import__('os').system('true')\""),
    "an attribute": reward('expression = "level.__class__"'),
    "a lambda": reward('expression = "(lambda: 0)()"'),
    "deep brackets": reward(f'expression = "{"(" * 4_000}level{")" * 4_000}"'),
    "deep signs": reward(f'expression = "{"-" * 9_000}level"'),
    "a long sum": reward(f'expression = "{"+".join(["level"] * 1_000)}"'),
    "an endless formula": reward(f'expression = "{"1+" * 50_000}1"'),
    "a number too large": reward('expression = "1e999*level"'),
    "a formula in another script": reward('expression = "-abs(ľevel)"'),
    "a full-width formula": reward('expression = "\uff0dlevel"'),
    "a condition for a number": reward('expression = "level > 1"'),
    "the future": reward('expression = "level[t+1]"'),
    "a past too far": reward('expression = "level[t-999999999]"'),
    "an empty formula": reward('expression = ""'),
    "no setpoint": reward('expression = "flow.error"'),
    "a where that needs itself": cart(WHERE, 'g = "g"'),
    "wheres that need each other": cart(WHERE, 'g = "h"\nh = "g"'),
    "wheres that double": cart(WHERE, DOUBLING),
    "a where named like a state": cart(WHERE, "rho = 1"),
    # Rewards
    "no reward": reward(""),
    "two rewards": reward(f'{EXPRESSION}\ncolumn = "r"'),
    "no cases": reward("cases = []\notherwise = 1"),
    "a case without a value": reward('cases = [{ when = "level > 1" }]\notherwise = 0'),
    "two failures": reward(f"cases = [{FAILURE * 2}]\notherwise = 0"),
    "too many cases": reward(f"cases = [{FAILURE * 4_000}]\notherwise = 0"),
    "terms of no kind": reward("terms = [{ weight = 1 }]"),
    "a term of two kinds": reward('terms = [{ track = "level", rate = "valve" }]'),
    "a term of a table": reward('terms = [{ track = { level = 1 } }]'),
    "a term that is a list": reward("terms = [[]]"),
    "too many terms": reward("terms = [" + '{ track = "level" },' * 1_000 + "]"),
    "a term with another's key": reward('terms = [{ track = "level", around = 1 }]'),
    "a term that breaks out": reward('terms = [{ when = "level > 1, 1, 0) + if(level > 2" }]'),
    "a negative weight": reward('terms = [{ track = "level", weight = -1 }]'),
    "a weight of NaN": reward('terms = [{ track = "level", weight = nan }]'),
    "a failure for nothing": reward('terms = [{ track = "level" }]\nfailure = "level > 2"'),
    # Starts, plant, data
    "an unknown start": SMALL.encode() + b"[starts]\nlevl = [0, 1]\n",
    "a start of NaN": SMALL.encode() + b"[starts]\nlevel = [nan, 1]\n",
    "starts from elsewhere": SMALL.encode() + b'[starts]\nfrom = "moon"\n',
    "a plant without equations": SMALL.encode() + b"[plant]\nsubsteps = 3\n",
    "a plant that lacks a state": SMALL.encode() + b'[plant]\nderivative = { level = "valve" }\n',
    "a plant that looks back": SMALL.encode() + b'[plant.derivative]\nlevel = "level[t-1]"\nflow = "0"\n',
    "a column for two": SMALL.encode() + b'[data]\nlevel = "x"\nflow = "x"\n',
    "a column of a number": SMALL.encode() + b"[data]\nlevel = 5\n",
    "an unknown role": SMALL.encode() + b'[data]\nclock = "t"\n',
}  # fmt: skip
