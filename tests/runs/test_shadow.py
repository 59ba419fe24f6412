"""A controller beside a plant: every sample once, whatever is stopped, and a plant that drifts is told."""

import base64
import gc
import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from clearloop.controllers import Controller, Equation
from clearloop.data import Batch
from clearloop.diagnosis.robustness import Region
from clearloop.errors import ClearloopError
from clearloop.pages.shadow_report import verdicts, write_shadow_report
from clearloop.runs.feeds import Access, Notice, OpcuaFeed, Sample, check_nodes, csv_feed
from clearloop.runs.shadow import Promise, Shadow, needed_states
from clearloop.surrogate.steps import BEST
from clearloop.task import Task
from tests.runs.guessing import linear_model
from tests.runs.opcua_plant import EPOCH, PlantServer, free_port

TOML = """
name = "boiler"
dt = 0.1
discount = 0.97
horizon = 20
history = 2
[states]
heat = { unit = "K", setpoint = 1.0, range = [-50, 50], frozen = 2.0 }
total = { formula = "clip(total[t-1] + heat.error, -100, 100)" }
[actions]
flame = { unit = "%", limits = [-10.0, 10.0], safe = -1.0 }
[reward]
expression = "-heat.error**2"
"""
TASK = Task.from_toml(TOML)
PLAIN = Task.from_toml(TOML.replace('total = { formula = "clip(total[t-1] + heat.error, -100, 100)" }', ""))
LAW = Equation(outputs={"flame": "-2*heat - 0.1*total + 0.3*flame[t-1]"}).for_task(TASK)
PLAIN_LAW = Equation(outputs={"flame": "-2*heat + 0.3*flame[t-1]"}).for_task(PLAIN)
NODES = {"heat": "ns=2;s=heat", "flame": "ns=2;s=flame", "heat.setpoint": "ns=2;s=aim"}


def boiler(rows: int, seed: int, *, gain: float = 0.5, first: int = 0) -> list[Sample]:
    """Under another controller: samples 0.1 s apart."""
    rng, heat, samples = np.random.default_rng(seed), 0.5, []
    for row in range(first, first + rows):
        flame = float(np.clip(-1.5 * (heat - 1) + rng.normal(scale=0.5), -10, 10))
        samples.append(Sample(row / 10, {"heat": heat, "flame": flame}))
        heat = 0.9 * heat + gain * flame + float(rng.normal(scale=0.02))
    return samples


def write_csv(file: Path, samples: Sequence[Sample], *, head: bool = True) -> str:
    lines = ["time;heat;flame"] * head
    lines += [f"{time!r};{values['heat']!r};{values['flame']!r}" for time, values in samples]
    text = "".join(f"{line}\n" for line in lines)
    with file.open("a", encoding="utf-8") as out:
        out.write(text)
    return text


def watch(folder: Path, feed: Iterator[Sample | Notice], **more: object) -> Shadow:
    law, task = (LAW, TASK) if "promise" not in more else (PLAIN_LAW, PLAIN)
    with Shadow(law, task, folder, **more) as beside:  # type: ignore[arg-type]
        for thing in feed:
            if isinstance(thing, Sample):
                beside.take(thing)
    return beside


def rows_of(folder: Path) -> pl.DataFrame:
    return pl.read_csv(folder / "shadow.csv")


@pytest.fixture(scope="module")
def log() -> Batch:
    frames = [
        pl.DataFrame({"time": s.time, **s.values, "episode": number} for s in boiler(150, number))
        for number in range(12)
    ]
    return Batch.from_frame(pl.concat(frames), PLAIN)


@pytest.fixture(scope="module")
def promise(log: Batch) -> Promise:
    return Promise(linear_model(PLAIN, log, BEST, 0), log)


def test_it_says_what_the_controller_would_have_done(tmp_path: Path) -> None:
    """Past actions are those that were applied, not its own."""
    samples = boiler(60, 1)
    write_csv(tmp_path / "log.csv", samples)
    watch(tmp_path / "out", csv_feed(str(tmp_path / "log.csv"), TASK, follow=False))
    found, before, total = rows_of(tmp_path / "out"), 0.0, 0.0
    assert found["time"].to_list() == [sample.time for sample in samples]
    for sample, own, given in zip(samples, found["flame.shadow"], found["total"], strict=True):
        total = float(np.clip(total + sample.values["heat"] - 1, -100, 100))
        assert given == pytest.approx(total)
        wanted = -2 * (sample.values["heat"] - 1) - 0.1 * total + 0.3 * before
        assert own == pytest.approx(np.clip(wanted, -10, 10))
        before = sample.values["flame"]


def test_lines_may_end_with_carriage_returns(tmp_path: Path) -> None:
    text = write_csv(tmp_path / "log.csv", boiler(9, 1))
    wanted = list(csv_feed(str(tmp_path / "log.csv"), TASK, follow=False))
    for end in ("\r", "\r\n"):
        (tmp_path / "other.csv").write_bytes(text.replace("\n", end).encode())
        assert list(csv_feed(str(tmp_path / "other.csv"), TASK, follow=False)) == wanted


def test_a_header_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("heat," + "x" * 200_000 + "\n1,2\n3,4\n")  # more than one cell may have
    with pytest.raises(ClearloopError, match=r"log\.csv: .*limit"):
        list(csv_feed(str(file), TASK, follow=False))


def test_however_it_is_stopped_the_rows_are_the_same(tmp_path: Path) -> None:
    """Also in the middle of a row of the plant, and of one of its own."""
    samples, whole = boiler(206, 2), tmp_path / "whole.csv"
    samples[9].values["heat"] = math.nan
    text = write_csv(whole, [*samples[:15], *samples[21:]])  # with a gap
    at_once = watch(tmp_path / "at once", csv_feed(str(whole), TASK, follow=False))
    assert (at_once.counts.gaps, at_once.counts.guarded) == (1, 1)
    wanted = (tmp_path / "at once" / "shadow.csv").read_bytes()
    for cut, lost in ((1500, 0), (3000, 13), (5000, 300)):
        part, out = tmp_path / "part.csv", tmp_path / f"{cut}"
        part.write_text(text[: text.rindex("\n", 0, cut) + 1])
        watch(out, csv_feed(str(part), TASK, follow=False))
        own = (out / "shadow.csv").read_bytes()
        (out / "shadow.csv").write_bytes(own[: len(own) - lost])
        part.write_text(text)
        beside = watch(out, csv_feed(str(part), TASK, follow=False))
        assert (out / "shadow.csv").read_bytes() == wanted
        assert beside.counts.samples == 200
        assert asdict(beside.counts) == asdict(at_once.counts)
        assert beside.events == at_once.events


def test_a_file_that_grows_is_followed(tmp_path: Path) -> None:
    samples, file = boiler(30, 3), tmp_path / "live.csv"
    text = write_csv(file, samples)
    file.write_text(text[:300])
    feed, found = csv_feed(str(file), TASK, follow=True, wait=0.01), []
    for thing in feed:
        if isinstance(thing, Sample):
            found.append(thing)
        elif len(file.read_text()) < len(text):
            file.write_text(text[: len(file.read_text()) + 41])  # not at the ends of rows
        if len(found) == 30:
            break
    assert found == samples


def test_gaps_are_marked_and_the_past_is_forgotten(tmp_path: Path) -> None:
    samples = boiler(40, 4)
    write_csv(tmp_path / "log.csv", [*samples[:20], *samples[25:]])
    beside = watch(tmp_path / "out", csv_feed(str(tmp_path / "log.csv"), TASK, follow=False))
    found = rows_of(tmp_path / "out")
    assert [row for row, gap in enumerate(found["gap"]) if gap] == [20]
    assert beside.counts.gaps == 1
    assert beside.counts.missing == pytest.approx(0.5)
    assert found["total"][20] == pytest.approx(samples[25].values["heat"] - 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [("nan", "no number"), ("", "no number"), ("inf", "no number"), ("99", "out of range")],
)
def test_a_guard_fires_and_the_memory_stays_clean(tmp_path: Path, change: str, reason: str) -> None:
    samples = boiler(60, 5)
    text = write_csv(tmp_path / "log.csv", samples)
    lines = text.splitlines()
    for row in range(20, 40):
        lines[row + 1] = f"{samples[row].time!r};{change};{samples[row].values['flame']!r}"
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    beside = watch(tmp_path / "out", csv_feed(str(tmp_path / "log.csv"), TASK, follow=False))
    found = rows_of(tmp_path / "out")
    assert beside.counts.guards == {f"heat: {reason}": 20}
    held = found["flame"][19]  # as it was applied last
    assert found["flame.shadow"].to_list()[20:40] == [held] * 10 + [-1.0] * 10
    assert found["flame.shadow"].is_finite().all()
    assert [one.text for one in beside.events] == [f"guard: heat is {reason}"]


def test_a_frozen_sensor_is_noticed(tmp_path: Path) -> None:
    samples = [Sample(k / 10, {"heat": 0.7, "flame": 0.1}) for k in range(40)]
    write_csv(tmp_path / "log.csv", samples)
    beside = watch(tmp_path / "out", csv_feed(str(tmp_path / "log.csv"), TASK, follow=False))
    assert beside.counts.guards == {"heat: frozen": 19}


def test_a_plant_that_drifts_leaves_the_promise(tmp_path: Path, log: Batch, promise: Promise) -> None:
    region = Region(PLAIN, log, rng=np.random.default_rng(0))
    usual = boiler(1500, 100)
    weak = boiler(1500, 101, gain=0.25, first=1500)
    write_csv(tmp_path / "log.csv", usual)
    beside = watch(
        tmp_path / "out",
        csv_feed(str(tmp_path / "log.csv"), TASK, follow=False),
        promise=promise,
        region=region,
    )
    assert not beside.has_left
    assert beside.counts.checked >= 100
    assert beside.counts.kept / beside.counts.checked > 0.85
    assert all(good for good, _ in verdicts(beside))
    write_csv(tmp_path / "log.csv", weak, head=False)
    beside = watch(
        tmp_path / "out",
        csv_feed(str(tmp_path / "log.csv"), TASK, follow=False),
        promise=promise,
        region=region,
    )
    assert beside.has_left
    assert beside.counts.left == 1
    (bad, *_) = [text for good, text in verdicts(beside) if not good]
    assert bad.startswith("The plant has left the promise.")
    page = write_shadow_report(beside).read_text(encoding="utf-8")
    assert "The plant has left the promise." in page
    assert (tmp_path / "out" / "shadow.png").stat().st_size > 10_000
    with Shadow(PLAIN_LAW, PLAIN, tmp_path / "out", promise=promise, region=region) as again:
        assert (again.counts, again.has_left) == (beside.counts, True)


def test_an_hour_at_ten_hertz(tmp_path: Path, promise: Promise) -> None:
    """The server is away five times, shadow begins again once, and the plant drifts in the last quarter.

    `python -m tests.runs.shadow_day` does this with a server, for a day.
    """
    hour, away = 36_000, 77
    samples = [*boiler(hour * 3 // 4, 100), *boiler(hour // 4, 101, gain=0.25, first=hour * 3 // 4)]
    lost = {row for k in range(1, 6) for row in range(hour * k // 6, hour * k // 6 + away)}
    seen = [sample for row, sample in enumerate(samples) if row not in lost]
    objects = []
    for part in (seen[:14_000], seen[13_900:]):  # what was offered already comes again
        with Shadow(PLAIN_LAW, PLAIN, tmp_path, promise=promise) as beside:
            for count, sample in enumerate(part):
                beside.take(sample)
                if count % 10_000 == 9_999:
                    gc.collect()
                    objects.append(len(gc.get_objects()))
    rows = rows_of(tmp_path)
    assert rows["time"].to_list() == [sample.time for sample in seen]
    assert rows["heat"].to_list() == [sample.values["heat"] for sample in seen]
    assert [row for row, gap in zip(rows["time"], rows["gap"], strict=True) if gap] == [
        samples[hour * k // 6 + away].time for k in range(1, 6)
    ]
    assert (beside.counts.samples, beside.counts.gaps, beside.counts.guarded) == (len(seen), 5, 0)
    assert beside.counts.missing == pytest.approx(5 * away / 10)
    assert (beside.counts.left, beside.has_left) == (1, True)
    told = [one.time for one in beside.events if "leaves the promise" in one.text]
    assert hour * 0.75 / 10 <= told[0] < hour * 0.8 / 10
    assert abs(objects[-1] - objects[-2]) < 2_000  # what is kept in memory does not grow
    assert len(beside.course.points) <= 1000
    assert beside.course.points[0][0] == 0.0
    low, high = (np.array([point[k] for point in beside.course.points]) for k in (1, 2))
    assert (low[:, 0].min(), high[:, 0].max()) == (rows["flame"].min(), rows["flame"].max())


def test_a_folder_of_another_controller_is_left_alone(tmp_path: Path) -> None:
    watch(tmp_path, iter(boiler(3, 7)))
    other: Controller = Equation(outputs={"flame": "-heat"}).for_task(TASK)
    with pytest.raises(ClearloopError, match="another controller or task; choose another --out"):
        Shadow(other, TASK, tmp_path)
    (tmp_path / "shadow.csv").write_text("time,x\n1,2\n")
    with pytest.raises(ClearloopError, match=r"shadow\.csv: damaged: row 1"):
        Shadow(LAW, TASK, tmp_path)


def test_a_folder_has_one_shadow_at_a_time(tmp_path: Path) -> None:
    """Two would mix their rows in one file."""
    with (
        Shadow(LAW, TASK, tmp_path),
        pytest.raises(ClearloopError, match="another process is at work there"),
    ):
        Shadow(LAW, TASK, tmp_path)
    with Shadow(LAW, TASK, tmp_path) as beside:
        assert beside.counts.samples == 0


def test_nodes_are_checked() -> None:
    needed = needed_states(LAW, TASK)
    assert needed == {"heat"}
    assert check_nodes(NODES, TASK, needed) == NODES
    with pytest.raises(ClearloopError, match=r"\[opcua\] haet: .* did you mean 'heat'\?"):
        check_nodes({"haet": "i=1"}, TASK, needed)
    with pytest.raises(ClearloopError, match=r"no node for heat: add a line such as heat = "):
        check_nodes({"flame": "i=1"}, TASK, needed)


# OPC UA, with asyncua's own server.


def offered(samples: Sequence[Sample], aim: float = 1.0) -> list[tuple[float, Mapping[str, float]]]:
    return [(time, {**values, "aim": aim}) for time, values in samples]


def watch_server(folder: Path, access: Access, wanted: int, server_ready: threading.Event) -> Shadow:
    """The trigger is also the node of a state."""
    feed = OpcuaFeed(access, NODES | {"trigger": NODES["heat"]}, TASK.dt, retry=0.1)
    with Shadow(LAW, TASK, folder) as beside:
        for thing in feed:
            if isinstance(thing, Sample):
                beside.take(thing)
            elif thing.text:
                beside.tell(thing.text)
            server_ready.set()
            if beside.counts.samples >= wanted:
                return beside
    raise AssertionError


def test_a_server_that_is_restarted_loses_nothing_that_was_offered(tmp_path: Path) -> None:
    samples, port, parts = boiler(300, 8), free_port(), [(0, 100), (130, 200), (210, 300)]
    wanted = [sample.time for low, high in parts for sample in samples[low:high]]
    access, found = Access(url=f"opc.tcp://127.0.0.1:{port}"), []
    ready = threading.Event()
    thread = threading.Thread(
        target=lambda: found.append(watch_server(tmp_path, access, len(wanted), ready)), daemon=True
    )
    for number, (low, high) in enumerate(parts):
        with PlantServer(("heat", "flame", "aim"), port) as server:
            if not number:
                thread.start()
            server.wait_for_items(3)
            server.offer(offered(samples[low : high - 20]), pause=0.002)
            server.stand_still(2.5)  # no reason to give up the connection
            server.offer(offered(samples[high - 20 : high]), pause=0.002)
            server.settle()
    thread.join(timeout=60)
    (beside,) = found
    rows = rows_of(tmp_path)
    assert [round(time - EPOCH.timestamp(), 6) for time in rows["time"]] == wanted
    assert [row for row, gap in enumerate(rows["gap"]) if gap] == [100, 170]
    assert sum(one.text == "connected again" for one in beside.events) == 2
    given = {sample.time: sample.values for sample in samples}
    assert rows["heat"].to_list() == [given[time]["heat"] for time in wanted]


@pytest.mark.parametrize("form", ["PEM", "DER"])
def test_a_user_and_a_certificate(form: str, tmp_path: Path) -> None:
    """What is in a file tells its form, because OpenSSL's keys in PEM are called `.key`."""
    port, names = free_port(), ("heat", "flame", "aim")
    certificate, key = make_certificate(tmp_path)
    ours = tmp_path / "client.crt", tmp_path / "client.key"
    for file, given in zip((certificate, key), ours, strict=True):
        text = file.read_text()
        raw = base64.b64decode("".join(text.splitlines()[1:-1]))
        given.write_bytes(text.encode() if form == "PEM" else raw)
    access = Access(
        url=f"opc.tcp://127.0.0.1:{port}",
        user="operator",
        password="secret",  # noqa: S106 - of the test's own server
        certificate=ours[0],
        key=ours[1],
    )
    with PlantServer(names, port, users=True, certificate=(certificate, key)) as server:
        found: list[Shadow] = []
        ready = threading.Event()
        thread = threading.Thread(
            target=lambda: found.append(watch_server(tmp_path / "out", access, 5, ready)), daemon=True
        )
        thread.start()
        server.wait_for_items(3)
        server.offer(offered(boiler(5, 9)), pause=0.01)
        thread.join(timeout=60)
        assert [one.counts.samples for one in found] == [5]
        wrong = Access(**{**vars(access), "password": "guessed"})
        with pytest.raises(ClearloopError, match=r"--opcua opc\.tcp"):
            next(thing for thing in OpcuaFeed(wrong, NODES, 0.1) if isinstance(thing, Sample))
        bare = Access(url=access.url)
        with pytest.raises(ClearloopError, match="does it ask for --certificate"):
            next(thing for thing in OpcuaFeed(bare, NODES, 0.1) if isinstance(thing, Sample))


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, as people make them for a test."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "clearloop test")])
    uri = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("urn:clearloop:test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=10))
        .add_extension(uri, critical=False)
        .sign(secret, hashes.SHA256())
    )
    certificate, key = folder / "our.pem", folder / "our.key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    return certificate, key


def test_a_node_that_is_not_there_is_named() -> None:
    port = free_port()
    with PlantServer(("heat", "flame", "aim"), port):
        nodes = {**NODES, "heat": "ns=2;s=hot"}
        feed = OpcuaFeed(Access(url=f"opc.tcp://127.0.0.1:{port}"), nodes, 0.1)
        with pytest.raises(ClearloopError, match=r"\[opcua\] heat: the server has no value at 'ns=2;s=hot'"):
            next(thing for thing in feed if isinstance(thing, Sample))


def test_the_action_is_written_only_within_its_limits(tmp_path: Path) -> None:
    port = free_port()
    with PlantServer(("heat", "flame", "aim", "hand"), port) as server:
        feed = OpcuaFeed(Access(url=server.url), NODES, 0.1)
        with Shadow(LAW, TASK, tmp_path) as beside:
            for thing in feed:
                if isinstance(thing, Notice):
                    if server.items >= 3 and not beside.counts.samples:
                        server.offer(offered([Sample(1.0, {"heat": -40.0, "flame": 0.0})]))
                    if server.value("hand"):
                        break
                elif beside.take(thing):
                    feed.write("ns=2;s=hand", beside.command())
        assert beside.shown == {"flame": 10.0}
        assert server.value("hand") == 10.0
    assert json.loads((tmp_path / "shadow.json").read_text())["task"] == "boiler"
