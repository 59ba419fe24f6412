"""`clearloop export` and `clearloop verify`."""

import json
import shutil
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from fmpy.model_description import read_model_description
from fmpy.validation import validate_fmu

from clearloop.controllers import save
from clearloop.verification import verdict
from clearloop.verification.verdict import Actions, BenchTrial
from tests.cli.conftest import Run
from tests.controllers.kinds import CARTPOLE, KINDS

OLD_RUN = Path(__file__).parents[1] / "version_0_1" / "finished"


@pytest.mark.parametrize("to", ["c", "javascript", "python", "latex"])
def test_without_a_file_the_code_is_printed(run: Run, published: Path, to: str) -> None:
    done = run("export", published / "gprl.json", "--task", "cartpole", "--to", to)
    assert (done.code, done.err) == (0, "")
    assert "force is limited to -10 … 10 N." in done.out
    assert "69.8" in done.out


def test_an_action_without_limits_is_pointed_out(run: Run, published: Path) -> None:
    done = run("export", published / "gprl.json", "--to", "python")
    assert done.code == 0
    assert done.err == "note: no limits are known for force; give --task, or write limits into the file\n"
    assert "note:" not in done.out


def test_a_header_is_written_beside_the_source(run: Run, published: Path, tmp_path: Path) -> None:
    out = tmp_path / "pole.c"
    done = run("export", published / "gprl.json", "--task", "cartpole", "--to", "c", "--out", out)
    assert done.code == 0
    assert done.out.split()[:2] == [f"{out},", f"{tmp_path / 'pole.h'}:"]
    assert '#include "pole.h"' in out.read_text(encoding="utf-8")
    assert "void pole_step(" in (tmp_path / "pole.h").read_text(encoding="utf-8")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pole.c", "pole.h"]


def test_single_files_take_any_name(run: Run, published: Path, tmp_path: Path) -> None:
    out = tmp_path / "my controller.py"
    assert (
        run("export", published / "pid.json", "--task", "cartpole", "--to", "python", "--out", out).code == 0
    )
    compile(out.read_text(encoding="utf-8"), str(out), "exec")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gprl.json", "--to", "cobol"), "no export target 'cobol'; expected one of: c, "),
        (("gprl.json", "--to", "c", "--precision", "half"), "precision 'half': expected double or single"),
        (("gprl.json", "--to", "python", "--precision", "single"), "python has no single precision"),
        (("gprl.json", "--to", "c", "--out", "x.py"), "--out x.py: expected a name that ends in .c"),
        (("gprl.json", "--to", "c", "--out", "my pole.c"), "a header needs a plain name, such as my_pole.c"),
        (("gprl.json", "--to", "python", "--out", "no/where.py"), "no/where.py: cannot be written"),
        (("missing.json", "--to", "c"), "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Run,
    published: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("export", published / arguments[0], *arguments[1:])
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_network_is_for_languages_that_nobody_reads(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "network.json"
    save(KINDS["network"].for_task(CARTPOLE), file)
    assert run("export", file, "--to", "c").code == 0
    done = run("export", file, "--to", "latex")
    assert done.code == 2
    assert "export it to one of: c, javascript, python" in done.err


def test_verify_says_that_it_is_equal(run: Run, published: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "bench"
    done = run("verify", published / "gprl.json", "--task", "cartpole", "--to", "c", "--out", folder)
    assert (done.code, done.err) == (0, "")
    assert "c, double precision: equal; largest difference 0 of an action's range" in done.out
    names = {"gprl.c", "gprl.h", "gprl_bench.c", "vectors.csv"}
    assert {file.name for file in folder.iterdir()} == names


def test_verify_as_json_and_on_a_log(run: Run, published: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    assert run("data", "make", "cartpole", "--size", 200, "--out", log).code == 0
    words = ("verify", published / "hardware.json", "--task", "cartpole", "--to", "python", "--json")
    alone, done = json.loads(run(*words).out), run(*words, "--data", log)
    document = json.loads(done.out)
    assert done.code == 0
    assert document["equal"] is True
    assert document["difference"] == 0
    assert document["vectors"] >= alone["vectors"] + 200 - document["left_out"]
    assert set(document) == {
        "to", "precision", "options", "vectors", "left_out", "guarded", "difference", "tolerance", "equal",
    }  # fmt: skip


def test_verify_needs_the_task_of_a_log(run: Run, published: Path, tmp_path: Path) -> None:
    done = run("verify", published / "gprl.json", "--to", "python", "--data", tmp_path / "log.csv")
    assert done.code == 2
    assert "--data needs --task" in done.err


def test_verify_exits_with_1_if_it_is_not_equal(
    run: Run, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = verdict.run_python

    def run_something_else(trial: BenchTrial) -> Actions:
        return honest(trial) + 1e-9

    monkeypatch.setattr(verdict, "run_python", run_something_else)
    done = run("verify", published / "gprl.json", "--task", "cartpole", "--to", "python")
    assert done.code == 1
    assert "NOT equal" in done.out


def test_an_fmu_is_a_file_and_is_verified(run: Run, published: Path, tmp_path: Path) -> None:
    words = ("export", published / "pid.json", "--task", "cartpole", "--to", "fmu")
    assert run(*words).err == "error: fmu is no text: add --out FILE.fmu\n"
    for options in ((), ("--with", "fmi3")):
        assert run(*words, *options, "--out", tmp_path / "my pid.fmu").code == 0
        assert validate_fmu(str(tmp_path / "my pid.fmu")) == []
    assert read_model_description(tmp_path / "my pid.fmu").fmiVersion == "3.0"
    done = run("verify", published / "gprl.json", "--task", "cartpole", "--to", "fmu")
    assert (done.code, "fmu, double precision: equal; largest difference 0 of" in done.out) == (0, True)


@pytest.mark.parametrize(("to", "ending"), [("c", "c"), ("st", "st"), ("plcopen", "xml"), ("python", "py")])
def test_the_head_has_the_hashes_of_what_it_was_made_from(
    run: Run, tmp_path: Path, to: str, ending: str
) -> None:
    """The controller's file, the run, the sign-off sheet, and the day."""
    shutil.copytree(OLD_RUN, tmp_path / "pole")
    card, out = tmp_path / "card.html", tmp_path / f"law.{ending}"
    card.write_text("signed")
    words = ("--card", card, "--date", "2026-11-19", "--out", out)
    assert run("export", "003", "--run", tmp_path / "pole", "--to", to, *words).code == 0
    text = " ".join(out.read_text(encoding="utf-8").replace(" *", "").split())
    files = (tmp_path / "pole" / "controllers" / "003.json", tmp_path / "pole" / "run.json", card)
    one, other, third = (sha256(file.read_bytes()).hexdigest() for file in files)
    assert f"Controller file 003.json, SHA-256 {one}." in text.replace("# ", "")
    assert f"Run pole: run.json, SHA-256 {other}." in text.replace("# ", "")
    assert f"Sign-off sheet card.html, SHA-256 {third}." in text.replace("# ", "")
    assert "Date: 2026-11-19." in text
    assert ('creationDateTime="2026-11-19T00:00:00"' in text) == (to == "plcopen")


def test_so_has_that_of_an_fmu(run: Run, published: Path, tmp_path: Path) -> None:
    words = ("--with", "sources-only", "--date", "2026-11-19", "--out", tmp_path / "law.fmu")
    assert run("export", published / "gprl.json", "--task", "cartpole", "--to", "fmu", *words).code == 0
    with zipfile.ZipFile(tmp_path / "law.fmu") as members:
        text = members.read("sources/law.c").decode()
    assert sha256((published / "gprl.json").read_bytes()).hexdigest() in text
    assert "Date: 2026-11-19." in text


def test_a_day_is_written_in_one_way(run: Run, published: Path) -> None:
    done = run("export", published / "gprl.json", "--to", "st", "--date", "19.11.2026")
    assert (done.code, done.err) == (2, "error: --date '19.11.2026': expected a day such as 2026-11-18\n")
