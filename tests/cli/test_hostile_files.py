"""Task files and controller files that are broken, odd or meant to do harm: one line, exit code 2."""

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Run
from tests.cli.hostile_controllers import CONTROLLERS, file
from tests.cli.hostile_tasks import TASKS
from tests.task.texts import CARTPOLE, SMALL


def is_one_line(done: Done) -> bool:
    line = done.err.removesuffix("\n")
    return (
        done.code == 2
        and done.out == ""
        and line.startswith("error: ")
        and line.isprintable()
        and len(line) < 1_000
        and "Traceback" not in line
    )


def test_there_are_many_of_them() -> None:
    assert len(TASKS) + len(CONTROLLERS) >= 180


def test_what_they_are_made_of_is_good(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cart.toml").write_text(CARTPOLE, encoding="utf-8")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    for name in ("cart.toml", "small.toml"):
        assert run("tasks", tmp_path / name).code == 0
    for kind in ("equation", "linear", "pid", "fuzzy", "network", "greedy-q"):
        (tmp_path / "it.json").write_bytes(file(kind))
        done = run("evaluate", tmp_path / "it.json", "--task", "cartpole", "--starts", "2")
        assert (done.code, done.err) == (0, ""), kind


@pytest.mark.parametrize("what", TASKS)
def test_a_hostile_task_file_is_answered_in_one_line(run: Run, tmp_path: Path, what: str) -> None:
    path = tmp_path / "it.toml"
    path.write_bytes(TASKS[what])
    (tmp_path / "log.csv").write_text("level,flow,valve\n0,0,0\n")
    for command in (["tasks", path], ["data", "check", tmp_path / "log.csv", "--task", path]):
        done = run(*command)
        assert is_one_line(done), done
        assert "it.toml" in done.err


@pytest.mark.parametrize("what", CONTROLLERS)
def test_a_hostile_controller_file_is_answered_in_one_line(run: Run, tmp_path: Path, what: str) -> None:
    path = tmp_path / "it.json"
    path.write_bytes(CONTROLLERS[what])
    done = run("evaluate", path, "--task", "cartpole", "--starts", "2")
    assert is_one_line(done), done


@pytest.mark.skipif("sys.platform == 'win32'", reason="links need rights there")
@pytest.mark.parametrize("name", ["it.toml", "it.json"])
def test_what_is_no_file(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    command = ["tasks", path] if name.endswith("toml") else ["evaluate", path, "--task", "cartpole"]
    assert is_one_line(run(*command))  # not there
    path.mkdir()
    assert is_one_line(run(*command))
    path.rmdir()
    path.symlink_to(tmp_path / "gone")
    assert is_one_line(run(*command))
    path.unlink()
    path.symlink_to(path)  # to itself
    assert is_one_line(run(*command))
    path.unlink()
    path.symlink_to("/dev/null")
    assert is_one_line(run(*command))
    path.unlink()
    path.symlink_to("/dev/zero")  # without end
    assert is_one_line(run(*command))
    long = tmp_path / ("x" * 300 + path.suffix)
    assert is_one_line(run(*[long if part == path else part for part in command]))


def test_a_good_link_is_followed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "real").write_text(SMALL, encoding="utf-8")
    (tmp_path / "it.toml").symlink_to(tmp_path / "real")
    assert run("tasks", tmp_path / "it.toml").code == 0
