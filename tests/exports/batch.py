"""Many exports at once: one C program, one node process, one Python for hundreds of controllers."""

import json
import math
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller
from clearloop.exports import DOUBLE, Precision, Routine, export, lower
from clearloop.exports.c import c_unit, helper_text
from clearloop.exports.guard import routine_of
from clearloop.verification.supervision import broken, expect_guarded
from clearloop.verification.vectors import Amount, Episode, Expectation, expect, vectors
from clearloop.verification.verdict import arguments_of

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-ffp-contract=off")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

Actions = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    controller: Controller
    routine: Routine
    expectation: Expectation
    precision: Precision

    @property
    def episodes(self) -> list[Episode]:
        return list(self.expectation.episodes)


def make_case(
    controller: Controller, rng: np.random.Generator, amount: Amount, *, precision: Precision = DOUBLE
) -> Case:
    routine = lower(controller)
    episodes = vectors(routine, precision, rng=rng, amount=amount)
    return Case(controller, routine, expect(controller, routine, episodes, precision), precision)


def make_guarded(
    controller: Controller,
    rng: np.random.Generator,
    options: frozenset[str] = frozenset(),
    *,
    precision: Precision = DOUBLE,
    episodes: int = 3,
    guard: bool = True,
) -> Case:
    """A block with its guard, and episodes in which sensors break and people change modes."""
    routine = routine_of(controller, options, guard=guard)
    made = broken(routine, controller, precision, rng=rng, count=episodes)
    expectation = expect_guarded(controller, routine, made, precision, options)
    return Case(controller, routine, expectation, precision)


_RUN = """
static void run_{k}(void)
{{
    {name}_memory memory;
    for (double rows = next(), episode = -1.0; rows > 0.0; rows -= 1.0) {{
        {name}_input input;
        {name}_output output;
        const double now = next();
        if (now > episode) {{ {name}_init(&memory); episode = now; }}
        {inputs}
        {name}_step(&memory, &input, &output);
        {outputs}
    }}
}}
"""

_MAIN = """
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static double next(void)
{{
    double value = 0.0;
    if (fread(&value, sizeof value, 1, stdin) != 1) {{ return 0.0; }}
    return value;
}}

static void put(double value)
{{
    fwrite(&value, sizeof value, 1, stdout);
}}

{units}

int main(void)
{{
{calls}
    return 0;
}}
"""


def c_program(cases: list[Case]) -> str:
    precision = cases[0].precision
    cast = "(float)" if precision.name == "single" else ""
    units = [c_unit(case.routine, f"c{k}", precision) for k, case in enumerate(cases)]
    texts = [helper_text(units)]
    for k, (case, unit) in enumerate(zip(cases, units, strict=True)):
        inputs = [
            f"{'input' if one.default is None else 'memory'}.{unit.members[one.variable]} = "
            + ("next() > 0.5;" if one.flag else f"{cast}next();")
            for one in case.routine.inputs
        ]
        if not case.routine.observed:
            inputs.append("input.unused = 0;")
        given = [one.action for one in case.routine.outputs] + [one.target for one in case.routine.reports]
        outputs = [f"put((double)output.{unit.members[one]});" for one in given]
        run = _RUN.format(k=k, name=unit.prefix, inputs=" ".join(inputs), outputs=" ".join(outputs))
        texts += [unit.types, unit.prototypes, unit.functions, run]
    calls = "\n".join(f"    run_{k}();" for k in range(len(cases)))
    return _MAIN.format(units="\n".join(texts), calls=calls)


def run_c(cases: list[Case], folder: Path, *flags: str) -> list[Actions]:
    (folder / "batch.c").write_text(c_program(cases))
    command = ["gcc", *STRICT, *(flags or ("-O0",)), "batch.c", "-lm", "-o", "batch"]
    subprocess.run(command, cwd=folder, check=True)
    numbers: list[float] = []
    for case in cases:
        names = [one.variable for one in case.routine.inputs]
        numbers.append(len(case.expectation.actions))
        for number, episode in enumerate(case.episodes):
            for step in episode:
                numbers += [number, *(step[name] for name in names)]
    sent = struct.pack(f"{len(numbers)}d", *numbers)
    done = subprocess.run([folder / "batch"], input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    assert not done.stderr, done.stderr.decode()[:2000]
    flat, answers = np.frombuffer(done.stdout), []
    for case in cases:
        size = case.expectation.actions.size
        answers.append(flat[:size].reshape(case.expectation.actions.shape))
        flat = flat[size:]
    assert len(flat) == 0
    return answers


_NODE = """
import { readFileSync } from "node:fs";
const answers = [];
for (const [file, episodes] of JSON.parse(readFileSync(0, "utf8"))) {
  const { reset, act } = await import(file);
  const rows = [];
  for (const episode of episodes) {
    const memory = reset();
    for (const [seen, setpoint] of episode) { rows.push(Object.values(act(seen, memory, setpoint))); }
  }
  answers.push(rows);
}
console.log(JSON.stringify(answers));
"""


def run_javascript(cases: list[Case], folder: Path) -> list[Actions]:
    sent = []
    for k, case in enumerate(cases):
        (text,) = export(case.controller, to="javascript").values()
        (folder / f"c{k}.mjs").write_text(text, encoding="utf-8")
        sent.append([f"./c{k}.mjs", [[arguments_of(step) for step in episode] for episode in case.episodes]])
    (folder / "batch.mjs").write_text(_NODE)
    done = subprocess.run(
        ["node", "batch.mjs"], input=json.dumps(sent), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:2000]
    return [_table(rows) for rows in json.loads(done.stdout)]


def run_python(cases: list[Case]) -> list[Actions]:
    """In this process: the text is our own."""
    answers = []
    for case in cases:
        (text,) = export(case.controller, to="python").values()
        module: dict[str, Any] = {}
        exec(text, module)  # noqa: S102
        rows: list[list[float | None]] = []
        for episode in case.episodes:
            memory = module["reset"]()
            pairs = map(arguments_of, episode)
            rows += [list(module["act"](seen, memory, setpoint).values()) for seen, setpoint in pairs]
        answers.append(_table(rows))
    return answers


def _table(rows: list[list[float | None]]) -> Actions:
    return np.array([[math.nan if value is None else value for value in row] for row in rows], dtype=float)
