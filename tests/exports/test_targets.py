"""The function that Python users call."""

import subprocess
import sys
from typing import Any

import pytest

import clearloop as cl
from clearloop.exports.targets import find_target
from clearloop.registry import TARGETS
from clearloop.verification.verdict import find_verifier
from tests.controllers.kinds import CARTPOLE, KINDS


def test_texts_by_file_name() -> None:
    files = cl.export(KINDS["equation"].for_task(CARTPOLE), to="c", name="law")
    assert list(files) == ["law.c", "law.h"]
    assert list(cl.export(KINDS["pid"], to="javascript")) == ["controller.mjs"]


@pytest.mark.parametrize(
    "first", ["pass", "import clearloop.exports", "from clearloop.exports.c import c_unit"]
)
def test_it_can_be_called_whatever_was_imported_before(first: str) -> None:
    text = f"""
import clearloop as cl
{first}
controller = cl.load("examples/published/gprl.json")
for _ in range(2):
    assert "69.8*theta" in cl.export(controller, to="python")["controller.py"]
from clearloop.exports import lower
assert lower(controller).outputs
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_the_exported_python_acts_as_the_controller_does() -> None:
    controller = KINDS["pid"].for_task(CARTPOLE)
    module: dict[str, Any] = {}
    exec(cl.export(controller, to="python")["controller.py"], module)  # noqa: S102
    ours, theirs = controller.reset(), module["reset"]()
    for step in range(50):
        observation = {"theta": 0.01 * step, "rho": 1 - 0.1 * step, "theta_dot": 0.0, "rho_dot": 0.0}
        aims = {"rho": 0.5} if step > 20 else None
        wanted = controller.act(observation, ours, aims)
        assert module["act"](observation, theirs, aims) == wanted


def test_exported_javascript_refuses_what_is_no_number() -> None:
    text = cl.export(KINDS["equation"], to="javascript")["controller.mjs"]
    for value in ("NaN", "undefined"):
        call = f"act({{theta: {value}, theta_dot: 0, rho: 0, rho_dot: 0}}, reset());"
        command = ["node", "--input-type=module", "-e", text + call]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0
        assert "TypeError: an input is not a number" in done.stderr


def test_exported_python_refuses_what_is_no_number() -> None:
    module: dict[str, Any] = {}
    exec(cl.export(KINDS["equation"], to="python")["controller.py"], module)  # noqa: S102
    with pytest.raises(ValueError, match="not a number"):
        module["act"](
            dict.fromkeys(("theta", "theta_dot", "rho", "rho_dot"), float("nan")), module["reset"]()
        )


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("st", "--with turbo: unknown option; st has action-deadband, anti-windup"),
        ("python", "--with turbo: python has no options: export to c, st, plcopen"),
    ],
)
def test_an_option_that_is_not_there(to: str, message: str) -> None:
    with pytest.raises(cl.ClearloopError, match=message):
        cl.export(KINDS["pid"], to=to, options=["turbo"])


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_writes_files_with_the_endings_that_it_says(name: str) -> None:
    target = find_target(name)
    assert (target.name, bool(target.title)) == (name, True)
    files = cl.export(KINDS["pid"].for_task(CARTPOLE), to=name, name="law")
    assert list(files) == [f"law{ending}" for ending in target.endings]
    assert not target.verifier or callable(find_verifier(name))
