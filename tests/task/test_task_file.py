"""Task files: a wrong one is told in one line where it is wrong and what was expected."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.expression import to_text
from clearloop.task import Task
from clearloop.task.task import LARGEST_TASK_FILE
from tests.task.texts import CARTPOLE, LEARNED, SMALL, edited


def outcome(text: str) -> str:
    """What is said about a task file; nothing if it is right."""
    try:
        Task.from_toml(text, source="my.toml")
    except ClearloopError as error:
        return str(error)
    return ""


def test_the_page_is_true() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
    whole, computed, guarded, cases, terms, starts, plant, hidden, benchmark, exploration, law = re.findall(
        r"```toml\n(.*?)```", page, re.S
    )
    assert outcome(whole + starts + plant + exploration) == ""
    named = 'name = "a"\ndt = 1.0\ndiscount = 0.9\nhorizon = 9\n'
    rest = '[actions]\npump = { limits = [0, 1] }\n[reward]\nexpression = "-pump"\n'
    assert outcome(named + computed + rest) == ""
    assert outcome(named + guarded + '[reward]\nexpression = "-level"\n') == ""
    assert outcome(named + "[states]\np = { external = true }\n" + rest + benchmark) == ""
    states = '[states]\nlevel = { setpoint = "level_sp" }\n'
    where = '[plant.where]\narea = 28.0\nmiddle = "upper"\noutflow = "lower"\n'
    assert outcome(named + states + rest + hidden + where) == ""
    assert outcome(named + states + rest + hidden + where + law) == ""
    head, tail = re.split(r"\[reward\]\n.*\n", whole)
    assert outcome(head + cases + tail) == ""
    expanded = Task.from_toml(head + terms + tail).reward_expression
    assert expanded is not None
    assert to_text(expanded) in " ".join(page.split())
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr == ""


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "tank.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert Task.load(path) == Task.from_toml(SMALL)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("carpole", None, "no task 'carpole': neither built in nor a .toml file; did you mean 'cartpole'?"),
        (
            "xyz",
            None,
            "no task 'xyz': neither built in nor a .toml file; the built-in tasks are: "
            "cartpole, cartpole-hardware, industrial, motor, mountaincar, pendulum, swingup, tank",
        ),
        ("none.toml", None, "none.toml: cannot be read: No such file or directory"),
        (
            "latin.toml",
            "name = 'ü'".encode("latin-1"),
            "latin.toml: not UTF-8 text (byte 8)",
        ),
        (
            "big.toml",
            b"#" * (LARGEST_TASK_FILE + 1),
            "big.toml: larger than the 256 KiB that such a file may have",
        ),
    ],
)
def test_what_cannot_be_read(
    name: str, content: bytes | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(ClearloopError) as caught:
        Task.load(name)
    assert str(caught.value) == expected


RHO = 'rho       = { unit = "m", setpoint = 0.0 }'
WRONG = [
    ([("discount", "discout")], "unknown key 'discout'; did you mean 'discount'?"),
    ([("dt = 0.025", "")], "missing key 'dt'"),
    ([("dt = 0.025", 'dt = "fast"')], "dt: expected a number greater than 0"),
    ([("dt = 0.025", "dt = inf")], "dt: expected a number greater than 0"),
    ([("0.97", "1.5")], "discount: expected a number greater than 0 and at most 1"),
    ([("horizon = 100", "horizon = 0")], "horizon: expected a whole number from 1 to 1,000,000"),
    ([("history = 1", "history = 1.5")], "history: expected a whole number from 1 to 1,000"),
    ([("symmetric = true", "symmetric = 1")], "symmetric: expected true or false"),
    ([("[states]", "[stats]")], "unknown key 'stats'; did you mean 'states'?"),
    ([("[states]", "[data]")], "missing table [states]"),
    ([("theta_dot", "sin")], "[states]: 'sin' cannot be a name"),
    ([("rho_dot", "time")], "[states]: 'time' cannot be a name"),
    ([("force =", "rho =")], "[actions]: the name 'rho' is taken already"),
    ([(RHO, 'rho = "m"')], "[states] rho: expected a table"),
    (
        [("setpoint = 0.0", "setpoint = true")],
        "[states] rho.setpoint: expected a number, or the name of a log column",
    ),
    ([("[-10.0, 10.0]", "[10.0, -10.0]")], "[actions] force.limits: expected two numbers, the smaller first"),
    ([("[-10.0, 10.0]", "[-10.0, inf]")], "[actions] force.limits: expected two numbers, the smaller first"),
    (
        [("[-10.0, 10.0]", "[-1e308, 1e308]")],
        "[actions] force.limits: expected two numbers, the smaller first",
    ),
    ([(", limits = [-10.0, 10.0]", "")], "[actions] force: missing key 'limits'"),
    ([("limits =", "limit =")], "[actions] force: unknown key 'limit'; did you mean 'limits'?"),
    ([("rho.error", "roh")], "[reward] cases[1].when: unknown name 'roh' at column 27; did you mean 'rho'?"),
    (
        [("rho.error", "theta.error")],
        "[reward] cases[1].when: 'theta.error': theta has no setpoint; give it one",
    ),
    (
        [("rho.error", "rho[t-1001]")],
        "[reward] cases[1].when: 'rho[t-1001]' looks back too far: at most 1000 steps",
    ),
    ([("< 0.5", "")], "[reward] cases[1].when: "),
    ([("value = 0.0", 'value = "0"')], "[reward] cases[1].value: expected a number"),
    (
        [("otherwise = -0.1", "")],
        "[reward]: expected exactly one of: cases with otherwise, terms, expression, column",
    ),
    ([("otherwise", 'column = "r"\notherwise')], "[reward]: expected exactly one of"),
    ([("value = 0.0", "value = 0.0, failure = true")], "[reward]: expected one case with failure = true"),
    ([("theta = [-0.6", "tetha = [-0.6")], "[starts]: unknown state 'tetha'; did you mean 'theta'?"),
    ([("[-0.6, 0.6]", "[0.6, -0.6]")], "[starts] theta: expected two numbers, the smaller first"),
    ([("theta = [-0.6, 0.6]", 'from = "batch"')], '[starts]: from = "batch" allows no other keys'),
    ([("[-0.6, 0.6]", '"batch"')], "[starts] theta: expected two numbers, the smaller first"),
    ([("substeps = 10", "substeps = 0")], "[plant] substeps: expected a whole number from 1 to 10,000"),
    ([('theta_dot = "theta_ddot"', "")], "[plant] derivative: missing state 'theta_dot'"),
    ([('theta_dot = "theta_ddot"', 'x = "1"')], "[plant] derivative: missing state 'theta_dot'"),
    (
        [("= { theta_dot = 0.0", "= { thetadot = 0.0")],
        "[plant] on_failure: unknown state 'thetadot'; did you mean",
    ),
    (
        [('"theta_ddot"', '"theta_ddot[t-1]"')],
        "[plant] derivative.theta_dot: 'theta_ddot[t-1]': a plant knows only",
    ),
    (
        [('"theta_ddot"', '"rho.error"')],
        "[plant] derivative.theta_dot: 'rho.error': a plant knows only the present",
    ),
    ([("g = 9.81", 'g = "k"')], "[plant] where.g: unknown name 'k' at column 1"),
    ([("g = 9.81", "force = 9.81")], "[plant] where: the name 'force' is taken already"),
    ([("substeps = 10", 'gymnasium = "A-v0"')], "[plant]: gymnasium allows no other keys"),
    (
        [("[plant]", '[data]\ntheta = "rho"\n[plant]')],
        "[data] theta: column 'rho' is read as theta and as rho",
    ),
    ([("[plant]", '[data]\nteta = "x"\n[plant]')], "[data]: unknown key 'teta'; did you mean 'theta'?"),
]


@pytest.mark.parametrize(("changes", "expected"), WRONG)
def test_a_wrong_file_is_told_where_and_what(changes: list[tuple[str, str]], expected: str) -> None:
    assert outcome(edited(*changes)).startswith(f"my.toml: {expected}")


def test_several_faults_are_counted() -> None:
    assert outcome(edited(("0.97", "2"), ("horizon = 100", "horizon = 0"), ("0.025", "0"))).endswith(
        "(and 2 more)"
    )
    faulty = edited(("rho.error", "roh"), ("g = 9.81", 'g = "k"'), ("theta = [-0.6", "tetha = [-0.6"))
    assert outcome(faulty).endswith("did you mean 'rho'? (and 2 more)")


def test_the_reward_column_is_named_once() -> None:
    assert outcome(LEARNED + '[data]\nreward = "x"\n') == (
        "my.toml: [data] reward: [reward] column already says 'r'; remove one of the two"
    )


def test_broken_toml_names_line_and_column() -> None:
    assert outcome("name = 'x'\ndt = = 1\n") == "my.toml: broken TOML: Invalid value (at line 2, column 6)"


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        ".".join("a" * 100_000) + " = 1",
        ".".join(['"\\""'] * 50_000) + " = 1",
        "a" * 200_000 + " = 1",
        "dt = " + "9" * 100_000,
        edited(("[states]", "[states]\n" + "\n".join(f"s{i} = {{}}" for i in range(10_000)))),
        edited(
            ("g = 9.81", 'a0 = "theta"\ng = 1\n' + "\n".join(f'a{i + 1} = "a{i}*a{i}"' for i in range(200)))
        ),
        edited(
            ("g = 9.81", 'a0 = "theta"\ng = 1\n' + "\n".join(f'a{i + 1} = "a{i} + 1"' for i in range(240)))
        ),
    ],
    ids=["lists", "dots", "quoted dots", "key", "number", "states", "doubling", "depth"],
)
def test_hostile_files_fail_fast(text: str) -> None:
    start = time.perf_counter()
    assert 0 < len(outcome(text)) < 300
    assert time.perf_counter() - start < 5


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damage_gives_a_task_or_one_line(data: st.DataObject) -> None:
    text = CARTPOLE
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + data.draw(st.text(max_size=5)) + text[stop:]
    said = outcome(text)
    assert said.startswith("my.toml: ") or not said
    assert len(said.splitlines()) <= 1
