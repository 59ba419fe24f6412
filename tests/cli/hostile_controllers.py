"""Controller files that are broken, odd or meant to do harm."""

import json
from typing import Any

from tests.task.texts import SMALL

MEGABYTE = 2**20


def controller(kind: str = "equation", **fields: Any) -> dict[str, Any]:
    bodies: dict[str, dict[str, Any]] = {
        "equation": {"outputs": {"force": "theta"}},
        "linear": {"gains": {"force": {"theta": 1.0}}},
        "pid": {"outputs": {"force": {"loops": [{"input": "theta", "kp": 1.0}]}}},
        "fuzzy": {"outputs": {"force": {"scale": 1.0, "alpha": 1.0, "rules": [
            {"if": {"theta": {"center": 0.0, "width": 1.0}}, "then": 1.0}]}}},
        "network": {"inputs": ["theta"], "layers": [{"weights": [[1.0]], "bias": [0.0]}],
                    "outputs": {"force": {}}},
        "greedy-q": {"inputs": ["theta"], "layers": [{"weights": [[1.0, 1.0]], "bias": [0.0]}],
                     "outputs": {"force": [-1, 1]}},
        "planner": {"run": "gone", "outputs": ["force"], "horizon": 5},
    }  # fmt: skip
    return {"clearloop": 1, "kind": kind, **bodies[kind], **fields}


def file(kind: str = "equation", **fields: Any) -> bytes:
    return json.dumps(controller(kind, **fields)).encode()


def formula(text: str) -> bytes:
    return file(outputs={"force": text})


def loops(*some: Any) -> bytes:
    return file("pid", outputs={"force": {"loops": some}})


def rules(*some: Any) -> bytes:
    return file("fuzzy", outputs={"force": {"scale": 1, "alpha": 1, "rules": some}})


def layers(*some: Any) -> bytes:
    return file("network", layers=some)


GOOD = file().decode()
CONTROLLERS: dict[str, bytes] = {
    # What is no JSON
    "empty": b"",
    "spaces": b"  \n",
    "binary junk": bytes(range(256)) * 40,
    "NUL bytes": GOOD.encode().replace(b"theta", b"th\0ta"),
    "UTF-16": GOOD.encode("utf-16"),
    "Latin-1": GOOD.replace("theta", "ü").encode("latin-1"),
    "half a surrogate": rb'{"clearloop": 1, "kind": "equation", "name": "\ud800", "outputs": {"force": "1"}}',
    "TOML": SMALL.encode(),
    "a comment": b"// a controller\n" + GOOD.encode(),
    "a comma too many": GOOD[:-1].encode() + b",}",
    "single quotes": GOOD.replace('"', "'").encode(),
    "cut": GOOD.encode()[:-3],
    "two objects": (GOOD + GOOD).encode(),
    "lists in lists": b"[" * 200_000,
    "objects in objects": b'{"a":' * 100_000,
    "a name of 10 MB": file(name="x" * (10 * MEGABYTE)),
    "20 MB": b" " * (20 * MEGABYTE),
    "NaN": GOOD[:-1].encode() + b', "dt": NaN}',
    "Infinity": GOOD[:-1].encode() + b', "dt": Infinity}',
    "a number too large": GOOD[:-1].encode() + b', "dt": 1e999}',
    "ten thousand digits": GOOD[:-1].encode() + b', "dt": ' + b"9" * 10_000 + b"}",
    "twice the same key": GOOD[:-1].encode() + b', "kind": "pid"}',
    "twice the same output": b'{"clearloop": 1, "kind": "equation", "outputs": {"force": "1", "force": "2"}}',
    # What is JSON, and no controller
    "null": b"null",
    "a number": b"42",
    "text": b'"theta"',
    "a list": b"[1, 2, 3]",
    "an empty object": b"{}",
    "another version": file(clearloop=2),
    "a version that is text": file(clearloop="1"),
    "no kind": b'{"clearloop": 1, "outputs": {"force": "theta"}}',
    "an unknown kind": b'{"clearloop": 1, "kind": "equatoin", "outputs": {}}',
    "a kind that is a list": b'{"clearloop": 1, "kind": ["equation"], "outputs": {}}',
    "an unknown key": file(colour="red"),
    "a key that is a terminal's command": json.dumps({**controller(), "\x1b[2J": 1}).encode(),
    "a name of two lines": file(name="a\nb"),
    "a name that is a terminal's command": file(name="\x1b[31mred"),
    "no outputs": file(outputs={}),
    "outputs is a list": file(outputs=["theta"]),
    "an output is a number": file(outputs={"force": 5}),
    "an unknown action": file(outputs={"forc": "theta"}),
    "an action too many": file(outputs={"force": "theta", "brake": "rho"}),
    "an action in another script": file(outputs={"f\u03bfrce": "theta"}),
    "limits the wrong way": file(limits={"force": [1, -1]}),
    "limits elsewhere": file(limits={"force": [100, 200]}),
    "limits of text": file(limits={"force": ["a", "b"]}),
    "limits of another": file(limits={"brake": [0, 1]}),
    "steps without limits": file(steps={"force": 1}),
    "steps that do not fit": file(limits={"force": [0, 1]}, steps={"force": 0.3}),
    "steps of nothing": file(limits={"force": [0, 1]}, steps={"force": 0}),
    "steps of another": file(limits={"force": [0, 1], "x": [0, 1]}, steps={"x": 1}),
    "a setpoint of text": file(setpoint={"rho": "0"}),
    "a setpoint of what has none": file(setpoint={"theta": 1.0}),
    "a unit of two lines": file(units={"theta": "a\nb"}),
    "dt is negative": file(dt=-1),
    # Formulas
    "an unknown name": formula("thet"),
    "itself": formula("force + 1"),
    "Python": formula("__import__('os').system('true')"),
    "deep brackets": formula("(" * 5_000 + "theta" + ")" * 5_000),
    "deep calls": formula("abs(" * 5_000 + "theta" + ")" * 5_000),
    "a very long sum": formula("+".join(["theta"] * 1_000_000)),
    "the future": formula("theta[t+1]"),
    "a past too far": formula("theta[t-5000]"),
    "a past of many digits": formula("theta[t-" + "9" * 5_000 + "]"),
    "no formula": formula(""),
    "only an operator": formula("*"),
    "a condition": formula("theta > 1"),
    "a character that looks like a minus": formula("\u2212theta"),
    # Other kinds
    "a gain of text": file("linear", gains={"force": {"theta": "1"}}),
    "a huge gain": file("linear", gains={"force": {"theta": 1e300}}),
    "a gain of what is not there": file("linear", gains={"force": {"thta": 1.0}}),
    "no gains": file("linear", gains={}),
    "a window of nothing": loops({"input": "theta", "kp": 1, "window": 0}),
    "a window without end": loops({"input": "theta", "kp": 1, "window": 10**12}),
    "no loops": loops(),
    "a loop on an action": loops({"input": "force", "kp": 1}),
    "a width of nothing": rules({"if": {"theta": {"center": 0, "width": 0}}, "then": 1}),
    "a rule about nothing": rules({"if": {"theta": None}, "then": 1}),
    "no rules": rules(),
    "a rule that is a number": rules(7),
    "layers that do not fit": layers({"weights": [[1.0, 2.0]], "bias": [0.0]}),
    "no layers": layers(),
    "ragged weights": layers({"weights": [[1.0], []], "bias": [0.0, 0.0]}),
    "an unknown activation": layers({"weights": [[1.0]], "bias": [0.0], "activation": "gelu"}),
    "weights of null": layers({"weights": [[None]], "bias": [0.0]}),
    "too many choices": file("greedy-q", outputs={"force": list(range(5_000))}),
    "no choices": file("greedy-q", outputs={"force": []}),
    "a planner without a model": file("planner"),
    "a planner without end": file("planner", horizon=10**9),
    "a planner of nothing": file("planner", particles=0),
}  # fmt: skip
