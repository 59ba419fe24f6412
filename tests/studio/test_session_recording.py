"""What is recorded is a batch like any other."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clearloop.data import Batch, check, read
from clearloop.errors import ClearloopError
from clearloop.studio.library import Batches, Runs
from clearloop.studio.session import Automatic, Faults, Recorder, Session
from tests.studio.test_session import LAWS, PUBLISHED, STAGES


def played(name: str, steps: int, seed: int = 0) -> tuple[Session, Recorder]:
    """By a thumb that goes to and fro at random."""
    session = Session(STAGES[name], seed)
    session.record("played")
    rng = np.random.default_rng(seed)
    for step in range(steps):
        if step % 3 == 0:
            session.steer({action: float(rng.uniform(-1, 1)) for action in session.task.actions})
        session.step()
    recorder = session.stop_recording()
    assert recorder is not None
    return session, recorder


@pytest.mark.parametrize(("name", "steps"), [("cartpole", 2_500), ("tank", 1_500)])
def test_data_check_and_learn_take_it(name: str, steps: int, tmp_path: Path) -> None:
    session, recorder = played(name, steps)
    batches = Batches(tmp_path)
    batches.keep(recorder)
    file = batches.path("played")
    report = check(session.task, read(str(file)))
    assert [finding for finding in report.findings if finding.severity == "problem"] == []
    batch = Batch.load(file, session.task)
    assert len(batch) == recorder.transitions
    assert batches.list()[0]["rows"] == recorder.transitions
    assert batches.list()[0]["episodes"] == batch.episode_count
    assert batches.list()[0]["task"] == name
    assert not list(batches.folder.glob(".*"))


def test_a_row_is_what_was_seen_and_then_done() -> None:
    session = Session(STAGES["cartpole"])
    session.drive(0, Automatic(PUBLISHED["lqr"]))
    session.disturb(Faults(noise=0.2, delay=1))
    session.record("x")
    shown, done = [], []
    for _ in range(30):
        shown.append(list(session.sides[0].seen.values()))
        session.step()
        done.append(session.sides[0].action["force"])
    shown.append(list(session.sides[0].seen.values()))
    recorder = session.stop_recording()
    assert recorder is not None
    batch = recorder.batch()
    np.testing.assert_array_equal(batch.states, shown)
    np.testing.assert_array_equal(batch.actions[:-1, 0], done)
    assert np.isnan(batch.actions[-1, 0])
    assert batch.times is not None
    np.testing.assert_allclose(batch.times, 0.025 * np.arange(31))


def test_a_fall_ends_an_episode_and_is_marked() -> None:
    _, recorder = played("cartpole", 400)
    batch = recorder.batch()
    assert batch.episode_count == recorder.episodes > 2
    ends = np.flatnonzero(np.diff(batch.episodes))
    assert batch.terminal[ends].all()
    assert (np.abs(batch.states[ends, 0]) > 0.7).all()
    assert batch.terminal.sum() in (batch.episode_count, batch.episode_count - 1)


def test_what_no_action_explains_is_no_transition() -> None:
    """A push, a new start, other sensors, another driver."""
    session = Session(STAGES["cartpole"])
    session.record("x")
    interferences: list[Callable[[], None]] = [
        lambda: session.push("rho_dot", 1.0),
        lambda: session.restart(3),
        lambda: session.disturb(Faults(delay=4)),
        lambda: session.drive(0, Automatic(PUBLISHED["gprl"])),
    ]
    for interference in interferences:
        for _ in range(5):
            session.step()
        interference()
    recorder = session.stop_recording()
    assert recorder is not None
    assert recorder.episodes == 4
    assert recorder.transitions == 19  # the step after the push is left out
    batch = recorder.batch()
    jumps = np.abs(np.diff(batch.states[:, 3]))[np.diff(batch.episodes) == 0]
    assert jumps.max() < 0.3


def test_setpoints_that_a_log_must_have_are_in_it() -> None:
    session = Session(STAGES["tank"])
    session.drive(0, Automatic(LAWS["tank"].for_task(session.task)))
    session.record("x")
    session.step()
    session.aim("level", 12.5)
    session.step()
    recorder = session.stop_recording()
    assert recorder is not None
    batch = recorder.batch()
    assert batch.setpoints is not None
    assert batch.setpoints[1:].tolist() == [[12.5], [12.5]]


def test_nothing_is_no_batch() -> None:
    session = Session(STAGES["cartpole"])
    session.record("x")
    recorder = session.stop_recording()
    assert recorder is not None
    assert recorder.transitions == recorder.episodes == 0
    with pytest.raises(ClearloopError):
        recorder.batch()
    assert session.stop_recording() is None


def test_two_who_record_at_the_same_time_get_names_of_their_own(tmp_path: Path) -> None:
    batches = Batches(tmp_path)
    assert [batches.free_name("cartpole") for _ in range(2)] == ["cartpole-play-1", "cartpole-play-2"]
    _, recorder = played("cartpole", 30)
    recorder.name = "cartpole-play-1"
    batches.keep(recorder)
    upload = batches.folder / ".upload.csv"
    recorder.batch().save(upload)
    for name in ("cartpole-play-1", "cartpole-play-2"):
        with pytest.raises(ClearloopError, match="already"):
            batches.take(upload, name, recorder.task)
    assert batches.take(upload, "mine", recorder.task)["rows"] == recorder.transitions
    assert Batches(tmp_path).free_name("cartpole") == "cartpole-play-2"


def test_names_of_tasks_that_are_no_names_of_files_are_told_apart_by_numbers(tmp_path: Path) -> None:
    batches, runs = Batches(tmp_path), Runs(tmp_path)
    names = [batches.free_name(task) for task in ("Kühl kreis", "Kuhl/kreis")]
    assert names == ["Kuhl-kreis-play-1", "Kuhl-kreis-play-2"]
    (tmp_path / runs.free_name("Kühl kreis")).mkdir()
    assert runs.free_name("Kuhl/kreis") == "Kuhl-kreis-2"
