"""Files that appear whole or not at all, and names for them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clearloop.errors import ClearloopError
from clearloop.files import file_name, read_text, whole_file


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cartpole", "cartpole"),
        ("my_plant-2.1", "my_plant-2.1"),
        ("Kühlkreis №1, Öl", "Kuhlkreis-No1-Ol"),
        ("a/../b\\c", "a-..-b-c"),
        ("../.hidden ", "hidden"),
        ("温度", "unnamed-efbd1ec2"),
        ("", "unnamed-00000000"),
        ("ab" * 29 + "c ...d", "ab" * 29 + "c"),
    ],
)
def test_any_text_has_a_name_that_every_file_system_takes(text: str, name: str) -> None:
    assert file_name(text) == name
    assert file_name(name) == name


def test_a_file_takes_its_name_when_all_of_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("before")
    with whole_file(path) as file:
        file.write(b"after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ValueError("no"), KeyboardInterrupt()]
)
def test_what_goes_wrong_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "x.txt"
    path.write_text("before")
    expected = ClearloopError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        _write_half(path, error)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def _write_half(path: Path, error: BaseException) -> None:
    with whole_file(path) as file:
        file.write(b"half")
        raise error


HALF = """
import os, signal, sys
from clearloop.files import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    os.kill(os.getpid(), signal.SIGKILL) if sys.argv[2] == "dies" else sys.stdin.read()
"""


def _start_to_write(path: Path, then: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", HALF, path, then], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"half\n"
    return process


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_what_a_killed_process_left_is_removed_and_what_another_one_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "x [1].txt"
    with _start_to_write(path, "dies") as dead:
        assert dead.wait() == -signal.SIGKILL
    with _start_to_write(path, "waits") as living:
        assert len(list(tmp_path.iterdir())) == 1  # its own
        other = tmp_path / ".x [1].txt.notes.partial"  # of somebody else
        other.touch()
        with whole_file(path) as file:
            file.write(b"ours")
        assert path.read_bytes() == b"ours"
        assert sorted(tmp_path.iterdir()) == [tmp_path / f".x [1].txt.{living.pid}.partial", other, path]
        living.communicate()
        assert living.returncode == 0
    assert path.read_bytes() == b"half"
    assert sorted(tmp_path.iterdir()) == [other, path]


@pytest.mark.parametrize("name", ["", ".", "gone/x", "folder"])
def test_a_place_that_cannot_be_written_to(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ClearloopError, match="cannot be written"), whole_file(tmp_path / name) as file:
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_text_of_limited_length(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes("\ufeffθ".encode())
    assert read_text(path, largest=5) == "θ"
    with pytest.raises(ClearloopError, match="larger than"):
        read_text(path, largest=4)
    path.write_bytes(b"ok\xff")
    with pytest.raises(ClearloopError, match=r"not UTF-8 text \(byte 2\)"):
        read_text(path, largest=100)
    with pytest.raises(ClearloopError, match="cannot be read: embedded null"):
        read_text("a\0b", largest=100)
