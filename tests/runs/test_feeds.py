"""Samples from a CSV file that changes, and samples that are put together from the nodes of a server."""

import asyncio
import io
import math
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asyncua import ua
from asyncua.ua import ua_binary

from clearloop.errors import ClearloopError
from clearloop.runs import feeds
from clearloop.runs.feeds import Notice, Sample, csv_feed
from clearloop.task import Task
from tests.runs.test_shadow import PLAIN, TOML

MINUTES = Task.from_toml(
    TOML.replace("setpoint = 1.0", 'setpoint = "aim"').replace('total = {', 'other = {}\ntotal = {')
    + '[data]\ntime = "when"\nflame = "burner"\n[sampling]\ntime_unit = "min"\n'
)  # fmt: skip


def samples_of(folder: Path, text: str, task: Task = PLAIN) -> list[Sample | Notice]:
    (folder / "log.csv").write_text(text)
    return list(csv_feed(str(folder / "log.csv"), task, follow=False))


def test_times_are_in_seconds_whatever_their_unit(tmp_path: Path) -> None:
    text = "when,heat,other,burner,aim\n0.5,1,2,3,4\n1.5,5,6,7,8\n"
    assert samples_of(tmp_path, text, MINUTES) == [
        Sample(30.0, {"heat": 1, "other": 2, "flame": 3, "heat.setpoint": 4}),
        Sample(90.0, {"heat": 5, "other": 6, "flame": 7, "heat.setpoint": 8}),
    ]


def test_numbers_may_have_decimal_commas(tmp_path: Path) -> None:
    found = samples_of(tmp_path, "time;heat;flame\n0,0;1,5;-2,25\n0,1;2,5;3,125\n0,2;1;1\n")
    assert [tuple(one.values.values()) for one in found if isinstance(one, Sample)] == [
        (1.5, -2.25), (2.5, 3.125), (1.0, 1.0),
    ]  # fmt: skip
    assert [one.time for one in found if isinstance(one, Sample)] == [0.0, 0.1, 0.2]


def test_a_row_of_units_is_no_sample(tmp_path: Path) -> None:
    found = samples_of(tmp_path, "heat,flame\n[K],[%]\n1,2\n3,4\n")
    assert [one.values["heat"] for one in found if isinstance(one, Sample)] == [1, 3]


def test_a_fixed_setpoint_may_be_a_column_all_the_same(tmp_path: Path) -> None:
    """It is the one that the plant has."""
    found = samples_of(tmp_path, "heat,flame,heat.setpoint\n1,2,3\n4,5,6\n")
    assert [one.values for one in found if isinstance(one, Sample)] == [
        {"heat": 1, "flame": 2, "heat.setpoint": 3}, {"heat": 4, "flame": 5, "heat.setpoint": 6},
    ]  # fmt: skip
    assert [one.time for one in found if isinstance(one, Sample)] == [0.0, 0.1]


def test_without_times_rows_are_one_step_apart(tmp_path: Path) -> None:
    found = samples_of(tmp_path, "heat,flame\n" + "1,2\n" * 6)
    assert [one.time for one in found if isinstance(one, Sample)] == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    )


def test_rows_may_be_few_and_lines_empty(tmp_path: Path) -> None:
    assert len(samples_of(tmp_path, "heat,flame\n1,2\n")) == 1
    assert len(samples_of(tmp_path, "heat,flame\n\n1,2\n\n3,4\n\n5,6")) == 3
    with pytest.raises(ClearloopError, match="has no rows"):
        samples_of(tmp_path, "heat,flame\n\n")


@pytest.mark.parametrize(
    "head",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 9, b"PK\3\4" + bytes(range(256)), b"\0" * 1000,
        "heat,flame\n1,2\n3,4\n".encode("utf-16"), b"heat,flame\n1,2\n\0\0\n", b"\x1b[2Jheat,flame\n1,2\n",
    ],
)  # fmt: skip
def test_a_file_that_begins_with_binary_data_is_no_log(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "log.csv").write_bytes(head)
    with pytest.raises(ClearloopError, match=r"log\.csv: is damaged, or is not a csv file"):
        list(csv_feed(str(tmp_path / "log.csv"), PLAIN, follow=False))


def test_a_damaged_row_in_the_middle_is_a_row_without_values(tmp_path: Path) -> None:
    found = samples_of(tmp_path, "heat,flame\n1,2\n3,4\n\0\0,\x89\n5,6\n")
    assert [one.values["heat"] for one in found if isinstance(one, Sample)] == pytest.approx(
        [1, 3, math.nan, 5], nan_ok=True
    )


def test_columns_that_are_missing_are_told_in_one_short_line(tmp_path: Path) -> None:
    columns = ",".join(["a\x85\u202e" * 200, "Heat (K)", *(f"x{i}" for i in range(200))])
    with pytest.raises(ClearloopError, match=r"no column 'heat'; did you mean 'Heat \(K\)'\?") as stop:
        samples_of(tmp_path, f"{columns}\n1,2\n3,4\n")
    assert str(stop.value).isprintable()
    assert len(str(stop.value)) < 1_000


def test_an_episode_that_begins_earlier_comes_after_the_last(tmp_path: Path) -> None:
    text = "time,episode,heat,flame\n0,a,1,1\n0.1,a,1,1\n0,b,1,1\n0.1,b,1,1\n"
    times = [one.time for one in samples_of(tmp_path, text) if isinstance(one, Sample)]
    assert times == pytest.approx([0.0, 0.1, 1.1, 1.2])  # ten intervals later


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "1e999", "1e30", "-1e307", "", "soon"])
def test_every_row_must_have_a_time_that_a_clock_can_show(tmp_path: Path, cell: str) -> None:
    text = f"when,heat,other,burner,aim\n0,1,1,1,1\n{cell},1,1,1,1\n"
    with pytest.raises(ClearloopError, match=r"log\.csv: row 2 has no time: "):
        samples_of(tmp_path, text, MINUTES)


def test_a_line_must_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LONGEST_LINE", 20)
    assert len(samples_of(tmp_path, "heat,flame\n1,2\n3," + "4" * 16 + "\n")) == 2
    with pytest.raises(ClearloopError, match="a line is longer than 20 bytes"):
        samples_of(tmp_path, "heat,flame\n1,2\n3," + "4" * 18 + "\n")


def test_standard_input_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"heat,flame\n1,2\n3,4\n5,6")))
    found = list(csv_feed("-", PLAIN, follow=True))
    assert [one.values["heat"] for one in found if isinstance(one, Sample)] == [1, 3, 5]
    assert not any(isinstance(one, Notice) for one in found)


def test_a_file_that_becomes_shorter_begins_again(tmp_path: Path) -> None:
    """It is told; while nothing is new, an empty notice says so."""
    file = tmp_path / "live.csv"
    file.write_text("heat,flame\n1,2\n3,4\n")
    feed = csv_feed(str(file), PLAIN, follow=True, wait=0.0)
    first = list(islice(feed, 3))
    assert [one.values["heat"] for one in first if isinstance(one, Sample)] == [1, 3]
    assert first[2] == Notice("")
    file.write_text("flame,heat\n7,8\n")  # also with its columns in another order
    second = list(islice(feed, 1))
    assert second == [Notice(f"{file} begins again")]
    with file.open("a") as more:
        more.write("9,10\n")
    found = list(islice(feed, 2))
    assert [one.values for one in found if isinstance(one, Sample)] == [
        {"heat": 8, "flame": 7}, {"heat": 10, "flame": 9},
    ]  # fmt: skip


def test_a_file_that_is_replaced_begins_again(tmp_path: Path) -> None:
    """As loggers do it every night: the old file gets another name, and a new one its name."""
    file = tmp_path / "live.csv"
    file.write_text("heat,flame\n1,2\n3,4\n")
    feed = csv_feed(str(file), PLAIN, follow=True, wait=0.0)
    assert list(islice(feed, 3))[2] == Notice("")
    file.rename(tmp_path / "yesterday.csv")
    assert next(feed) == Notice("")  # the new one is not there yet
    file.write_text("heat,flame\n5,6\n7,8\n9,10\n11,12\n")  # and is longer at once
    found = list(islice(feed, 5))
    assert found[0] == Notice(f"{file} begins again")
    samples = [one for one in found if isinstance(one, Sample)]
    assert [one.values["heat"] for one in samples] == [5, 7, 9, 11]
    assert [one.time for one in samples] == pytest.approx([0.2, 0.3, 0.4, 0.5])  # after those of the old one


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system has no time zone of a process")
def test_a_date_without_a_zone_is_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is in logs, wherever the machine stands."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        cells = ("2026-11-19T08:00:00", "2026-11-19T08:00:00.1Z", "2026-11-19T13:30:00.2+05:30")
        rows = "".join(f"{cell},1,2,3,4\n" for cell in cells)
        found = samples_of(tmp_path, f"when,heat,other,burner,aim\n{rows}", MINUTES)
    finally:
        monkeypatch.undo()
        time.tzset()
    first = datetime(2026, 11, 19, 8, tzinfo=UTC).timestamp()
    times = [one.time - first for one in found if isinstance(one, Sample)]
    assert times == pytest.approx([0.0, 0.1, 0.2], abs=1e-6)


def test_a_file_that_another_one_replaces_is_read_to_its_end_first(tmp_path: Path) -> None:
    """As a logger does that begins a new file each day; in between, there may be no file for a while."""
    file, old = tmp_path / "live.csv", tmp_path / "live.csv.1"
    file.write_text("time,heat,flame\n0,1,2\n1,3,4\n")
    feed = csv_feed(str(file), PLAIN, follow=True, wait=0.0)
    assert [one.time for one in islice(feed, 2) if isinstance(one, Sample)] == [0, 1]
    assert list(islice(feed, 1)) == [Notice("")]
    file.rename(old)
    assert list(islice(feed, 2)) == [Notice(""), Notice("")]
    with old.open("a") as more:
        more.write("2,5,6\n")
    file.write_text("time,heat,flame\n3,7,8\n4,9,10\n5,11,12\n6,13,14\n")  # and longer than the old one
    found = list(islice(feed, 6))
    assert [one.time if isinstance(one, Sample) else one.text for one in found] == [
        2, f"{file} begins again", 3, 4, 5, 6,
    ]  # fmt: skip


# Nodes of a server: each change comes alone, with its own time.


class Nodes:
    """A collector for the nodes `heat` and `flame`, of which the second is the trigger."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.collector = feeds._Collector({"heat": "1", "flame": "2"}, "flame", self.put)
        self.collector.names = {1: ["heat"], 2: ["flame"]}

    def put(self, thing: Sample | Notice) -> None:
        assert isinstance(thing, Sample)
        self.samples.append(thing)

    def change(self, node: int, second: float, value: object, good: bool = True) -> None:
        change(self.collector, node, second, value, good)


def change(collector: Any, node: object, second: float, value: object, good: bool = True) -> None:
    """Tell a change of a node, as asyncua does."""
    whole = SimpleNamespace(
        SourceTimestamp=datetime.fromtimestamp(second, UTC).replace(tzinfo=None), ServerTimestamp=None,
        StatusCode=SimpleNamespace(is_good=lambda: good),
    )  # fmt: skip
    data = SimpleNamespace(monitored_item=SimpleNamespace(Value=whole))
    collector.datachange_notification(SimpleNamespace(nodeid=node), value, data)


def test_a_sample_is_complete_when_every_node_is_as_new_as_the_trigger() -> None:
    nodes = Nodes()
    nodes.change(1, 10.0, 5.0)
    assert nodes.samples == []  # the trigger decides
    nodes.change(2, 10.0, 7.0)
    assert nodes.samples == [Sample(10.0, {"heat": 5.0, "flame": 7.0})]
    nodes.change(2, 11.0, 8.0)
    assert len(nodes.samples) == 1
    nodes.change(1, 11.0, 6.0)
    assert nodes.samples[1:] == [Sample(11.0, {"heat": 6.0, "flame": 8.0})]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="a process cannot change its time zone here")
def test_times_of_servers_are_in_utc_wherever_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EST5")
        time.tzset()
        nodes = Nodes()
        nodes.change(1, 10.0, 5.0)
        nodes.change(2, 10.0, 7.0)
    time.tzset()
    assert [one.time for one in nodes.samples] == [10.0]


def test_a_sample_has_the_values_of_its_own_time() -> None:
    """Heat changes three times before the trigger comes."""
    nodes = Nodes()
    for second in range(4):
        nodes.change(1, 10.0 + second, float(second))
    nodes.change(2, 12.0, 7.0)
    assert nodes.samples == [Sample(12.0, {"heat": 2.0, "flame": 7.0})]
    nodes.change(2, 13.0, 7.5)
    assert nodes.samples[1:] == [Sample(13.0, {"heat": 3.0, "flame": 7.5})]


def test_a_change_that_is_told_twice_counts_once() -> None:
    nodes = Nodes()
    nodes.change(1, 10.0, 5.0)
    for _ in range(2):
        nodes.change(2, 10.0, 7.0)
    assert len(nodes.samples) == 1
    nodes.change(2, 9.0, 7.0)  # and an older one not at all
    assert len(nodes.samples) == 1


def test_a_node_that_does_not_change_is_waited_for_only_so_long() -> None:
    nodes = Nodes()
    nodes.change(1, 10.0, 5.0)
    nodes.change(2, 11.0, 7.0)
    nodes.collector.settle(1e9)
    assert nodes.samples == []
    nodes.collector.settle(0.0)
    assert nodes.samples == [Sample(11.0, {"heat": 5.0, "flame": 7.0})]


def test_before_a_node_had_a_value_there_is_no_sample() -> None:
    nodes = Nodes()
    nodes.change(1, 12.0, 5.0)
    nodes.change(2, 11.0, 7.0)
    nodes.collector.settle(0.0)
    assert nodes.samples == []


@pytest.mark.parametrize(("value", "good"), [("text", True), (None, True), (5.0, False)])
def test_what_is_no_number_or_bad_is_missing(value: object, good: bool) -> None:
    nodes = Nodes()
    nodes.change(1, 10.0, value, good)
    nodes.change(2, 10.0, 7.0)
    (sample,) = nodes.samples
    assert math.isnan(sample.values["heat"])
    assert sample.values["flame"] == 7.0


# A server that is not there: what a feed asks of it, and when.


class Server:
    """Takes the place of asyncua's client. Heat changes before the trigger, and never again."""

    def __init__(self) -> None:
        self.nodes = SimpleNamespace(server_state=self)
        self.period, self.order, self.asked = 0.0, [""], 0
        self.settings: tuple[int, float] = (0, 0.0)
        self.left = False

    async def create_subscription(self, period: float, collector: Any) -> "Server":
        self.period, self.collector = period, collector
        return self

    def get_node(self, text: str) -> Any:
        return SimpleNamespace(nodeid=text, read_value=self.read_value)

    async def read_value(self) -> float:
        return 1.0

    async def _subscribe(self, nodes: list[Any], *, mfilter: Any, queuesize: int, **more: float) -> None:
        assert "Timestamp" in mfilter.Trigger.name  # a value that stays is a sample, too
        self.order = [node.nodeid for node in nodes]
        self.settings = queuesize, more["sampling_interval"]
        for second, node in enumerate(nodes):
            change(self.collector, node.nodeid, 10.0 + second, 5.0 + second)

    async def check_connection(self) -> None:
        self.asked += 1

    async def disconnect(self) -> None:
        self.left = True


def listen(
    monkeypatch: pytest.MonkeyPatch, nodes: dict[str, str], dt: float, rounds: int
) -> tuple[Server, list[Any]]:
    """What a feed asked of a server, and what it got, in so many rounds."""
    server = Server()

    async def connect(_: feeds.Access) -> Server:
        return server

    async def go_on() -> None:
        left = rounds
        async for _ in feed._listen():
            left -= 1
            if left < 0:
                feed._stopped.set()

    monkeypatch.setattr(feeds, "connect", connect)
    feed = feeds.OpcuaFeed(feeds.Access(url="opc.tcp://nowhere"), nodes, dt)
    asyncio.run(go_on())
    return server, list(feed._queue.queue)


def test_a_feed_ends_together_with_its_thread() -> None:
    """Otherwise the next one would find the server's sessions taken."""

    class Slow(feeds.OpcuaFeed):
        ended = False

        def _run(self) -> None:
            self._put(Sample(0.0, {}))
            self._stopped.wait()
            time.sleep(0.2)
            self.ended = True

    feed = Slow(feeds.Access(url="opc.tcp://nowhere"), {"heat": "h"}, 0.1)
    samples = iter(feed)
    assert next(samples) == Sample(0.0, {})
    samples.close()  # type: ignore[attr-defined]
    assert feed.ended


def test_it_makes_no_sense_to_ask_again_who_refused_us() -> None:
    from asyncua.ua import uaerrors

    ua: Any = uaerrors
    for error in (ua.BadIdentityTokenRejected(), ua.BadUserAccessDenied(), ValueError()):
        assert feeds._is_final(error)
    for later in (ua.BadTimeout(), ua.UaError(), OSError(), TimeoutError()):
        assert not feeds._is_final(later)


@pytest.mark.parametrize(("dt", "period"), [(0.001, 20.0), (0.03, 30.0)])
def test_a_server_publishes_once_in_a_step_within_reason(
    monkeypatch: pytest.MonkeyPatch, dt: float, period: float
) -> None:
    server, _ = listen(monkeypatch, {"heat": "h"}, dt, 1)
    assert server.period == period
    assert server.settings == (feeds.OpcuaFeed.QUEUE, 0.0)
    assert server.asked > 0
    assert server.left


@pytest.mark.parametrize("nodes", [{"trigger": "t", "heat": "h"}, {"heat": "h", "trigger": "t"}])
def test_the_trigger_is_the_last_node(monkeypatch: pytest.MonkeyPatch, nodes: dict[str, str]) -> None:
    """So that the others have their values when it comes. Heat stays, and is not waited for any longer."""
    server, found = listen(monkeypatch, nodes, 0.01, 3)
    assert server.order == ["h", "t"]
    assert found == [Sample(11.0, {"heat": 5.0})]


def test_without_a_trigger_the_first_node_is_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = listen(monkeypatch, {"heat": "h", "flame": "f"}, 0.01, 0)
    assert server.order == ["f", "h"]


@pytest.mark.parametrize("form", ["PEM", "DER"])
def test_the_application_is_named_by_its_certificate(tmp_path: Path, form: str) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    day = datetime(2026, 11, 19, tzinfo=UTC)
    plain = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day)
    named = plain.add_extension(
        x509.SubjectAlternativeName([x509.UniformResourceIdentifier("urn:me")]), critical=False
    )
    file = tmp_path / "c"
    for builder, uri in ((plain, None), (named, "urn:me")):
        signed = builder.sign(key, hashes.SHA256())
        file.write_bytes(signed.public_bytes(getattr(serialization.Encoding, form)))
        assert feeds._application_uri(file.read_bytes()) == uri


# What is written to a server.


class Written:
    """Takes the place of a client with one node, which is slow to take values."""

    def __init__(self, kind: ua.VariantType, meanwhile: Callable[[float], None] = lambda _: None) -> None:
        self._kind, self._meanwhile = kind, meanwhile
        self.values: list[float] = []

    def get_node(self, text: str) -> Any:  # noqa: ARG002
        return self

    async def read_data_type_as_variant_type(self) -> ua.VariantType:
        return self._kind

    async def write_value(self, content: ua.DataValue) -> None:
        assert content.Value is not None
        ua_binary.to_binary(ua.Variant, content.Value)  # as it goes over the line
        self.values.append(content.Value.Value)
        self._meanwhile(content.Value.Value)


@pytest.mark.parametrize(
    ("kind", "wanted"), [("Double", 2.6), ("Float", 2.6), ("Int16", 3), ("UInt32", 3), ("Byte", 3)]
)
def test_a_node_of_whole_numbers_gets_the_nearest_one(kind: str, wanted: float) -> None:
    client = Written(ua.VariantType[kind])
    asyncio.run(feeds._write_value(client, "u", 2.6))  # type: ignore[arg-type]
    assert client.values == [wanted]


def test_a_value_that_comes_while_another_is_written_is_written_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def meanwhile(value: float) -> None:
        if value == 1.0:
            feed.write("u", 2.0)

    class Slow(Server, Written):
        def __init__(self) -> None:
            Server.__init__(self)
            Written.__init__(self, ua.VariantType.Double, meanwhile)

        def get_node(self, text: str) -> Any:
            return self if text == "u" else Server.get_node(self, text)

    server = Slow()

    async def connect(_: feeds.Access) -> Slow:
        return server

    async def go_on() -> None:
        async for _ in feed._listen():
            if server.asked:
                feed._stopped.set()

    monkeypatch.setattr(feeds, "connect", connect)
    feed = feeds.OpcuaFeed(feeds.Access(url="opc.tcp://nowhere"), {"heat": "h"}, 0.001)
    feed.write("u", 1.0)
    asyncio.run(go_on())
    assert server.values == [1.0, 2.0]
