"""The other process of a plant that is a program of others: it answers requests, each a line of JSON.

This file imports nothing of clearloop. As a program it serves the Industrial Benchmark, whose interpreter
need not have clearloop.
"""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any, Callable, Protocol  # noqa: UP035 - also for older versions of Python


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """The reason why a request cannot be answered."""


class Unit(Protocol):
    """A plant that runs step by step."""

    def begin(self, starts: dict[str, Any]) -> list[float | None]:
        """Begin an episode and return the outputs, None for what is no number."""

    def advance(self, inputs: list[float]) -> list[float | None]:
        """Run one step and return the outputs after it."""


def serve(make: Callable[[dict[str, Any]], Unit], kind: str) -> None:
    """Answer requests on standard input until it ends. The plant gets no access to the answers' stream.

    Args:
        make: Makes the plant from the first request.
        kind: What errors call the plant.
    """
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # what the plant prints must not stand among the answers
    unit: Unit | None = None
    for line in sys.stdin.buffer:
        try:
            request, answer = json.loads(line), None
            if unit is None:
                unit = make(request)
            elif "begin" in request:
                answer = unit.begin(request["begin"])
            else:
                answer = unit.advance(request["inputs"])
            sent: dict[str, Any] = {"answer": answer}
        except Refusal as refusal:
            sent = {"error": str(refusal)}
        except Exception as error:  # whatever the program of others raises
            text = " ".join(str(error).split())
            sent = {"error": f"the {kind} failed: {text or type(error).__name__}"[:600]}
        answers.write(json.dumps(sent).encode() + b"\n")
        answers.flush()


class IndustrialBenchmark:
    """The class `IDS` of industrial_benchmark_python: an episode is a new object, with a seed of its own."""

    STATES = ("p", "v", "g", "h", "c", "f")
    ACTIONS = ("delta_v", "delta_g", "delta_h")

    def __init__(self, wanted: dict[str, Any]) -> None:
        try:
            import numpy as np

            if not hasattr(np, "float"):
                setattr(np, "float", float)  # noqa: B010 - what NumPy 1.24 dropped, and the package needs
            from industrial_benchmark_python.IDS import IDS
        except ImportError as error:
            raise Refusal(
                f"{sys.executable} does not have it ({error}): python -m venv DIR, then "
                'DIR/bin/pip install "numpy<2" "scipy<1.14" industrial-benchmark-python, then set '
                "CLEARLOOP_INDUSTRIAL_PYTHON=DIR/bin/python"
            ) from error
        self._make: Any = IDS
        self._outputs = wanted["outputs"]
        for name in self._outputs:
            if name not in self.STATES:
                raise Refusal(f"it has no state '{name}'; its states are {', '.join(self.STATES)}")
        if sorted(wanted["inputs"]) != sorted(self.ACTIONS):
            raise Refusal(f"its actions are {', '.join(self.ACTIONS)}, not {', '.join(wanted['inputs'])}")
        self._order = [wanted["inputs"].index(name) for name in self.ACTIONS]

    def begin(self, starts: dict[str, Any]) -> list[float | None]:
        for name in starts:
            if name not in ("p", "seed"):
                raise Refusal(f"only its setpoint p can be chosen at the start, not '{name}'")
        if not 0 <= starts["p"] <= 100:
            raise Refusal(f"p: expected a setpoint from 0 to 100, not {starts['p']:g}")
        self._plant = self._make(p=starts["p"], inital_seed=starts["seed"])
        return self._read()

    def advance(self, inputs: list[float]) -> list[float | None]:
        self._plant.step([inputs[place] for place in self._order])
        return self._read()

    def _read(self) -> list[float | None]:
        values = [float(self._plant.state[name]) for name in self._outputs]
        return [value if math.isfinite(value) else None for value in values]


if __name__ == "__main__":
    serve(IndustrialBenchmark, "package")
