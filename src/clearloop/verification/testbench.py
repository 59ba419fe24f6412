"""Test benches beside an export: a file of test vectors, and programs for C and for the PLC."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clearloop.controllers import Controller
from clearloop.controllers.routine import Output, Routine
from clearloop.exports.c import c_unit
from clearloop.exports.guard import STATUS
from clearloop.exports.printer import STEP, Names
from clearloop.exports.spans import Precision
from clearloop.exports.structured_text.functions import RESERVED, real, st_literal
from clearloop.exports.structured_text.printing import pous
from clearloop.exports.structured_text.units import Declaration, Pou, comment, declared_lines, folded_lines
from clearloop.verification.vectors import Episode, Expectation

FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-ffp-contract=off")


def vectors_csv(routine: Routine, expectation: Expectation) -> str:
    """Return a table with a row for each step: episode, whether to compare, inputs, actions, reports.

    The inputs are in the order of the exported block.
    """
    inputs = [one.variable for one in routine.inputs]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    actions = [output.action.name for output in routine.outputs]
    actions += [report.target.name for report in routine.reports]
    writer.writerow(["episode", "compare", *map(str, inputs), *actions])
    step = 0
    for index, episode in enumerate(expectation.episodes):
        for values in episode:
            wanted = expectation.actions[step].tolist()
            row = [repr(values[name]) for name in inputs] + [repr(value) for value in wanted]
            writer.writerow([index, int(expectation.compared[step]), *row])
            step += 1
    return text.getvalue()


_BENCH = """/*
 * Test bench: runs the controller on the rows of vectors.csv and compares its actions with the expected ones.
 *   cc {flags} {name}.c {name}_bench.c -lm -o {name}_bench
 *   ./{name}_bench vectors.csv              prints the largest difference, relative to the action's range
 *   ./{name}_bench vectors.csv actions.csv  also writes every action
 */
#include "{name}.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS {columns}

/* Reads the numbers of a line. Returns 0 at the end of the file. */
static int read_row(FILE *file, double *row)
{{
    static char line[{length}];
    char *text = line;
    if (fgets(line, (int)sizeof line, file) == NULL) {{ return 0; }}
    for (int k = 0; k < COLUMNS; k++) {{
        row[k] = strtod(text, &text);
        if (*text == ',') {{ text++; }}
    }}
    return 1;
}}

int main(int count, char **arguments)
{{
    const double tolerance = {tolerance};
    {name}_memory memory;
    double row[COLUMNS], episode = -1.0, worst = 0.0;
    long compared = 0, left_out = 0;
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    FILE *actions = count > 2 ? fopen(arguments[2], "w") : NULL;
    if (file == NULL || (count > 2 && actions == NULL)) {{
        fprintf(stderr, "usage: {name}_bench vectors.csv [actions.csv]\\n");
        return 2;
    }}
    read_row(file, row); /* skips the line with the names */
    while (read_row(file, row)) {{
        {name}_input input;
        {name}_output output;
        if (row[0] > episode || row[0] < episode) {{
            episode = row[0];
            {name}_init(&memory);
        }}
{assignments}
        {name}_step(&memory, &input, &output);
        if (row[1] > 0.5) {{ compared++; }} else {{ left_out++; }}
{comparisons}
    }}
    printf("%ld vectors compared, %ld left out, largest difference %.3g: %s\\n", compared, left_out, worst,
        worst <= tolerance ? "equal" : "NOT EQUAL");
    if (actions != NULL) {{ fclose(actions); }}
    fclose(file);
    return worst <= tolerance ? 0 : 1;
}}
"""

_COMPARISON = """        {{
            const double found = (double)output.{member};
            const double range = {range};
            const double off = fabs(found - row[{column}])/range;
            if (row[1] > 0.5 && !(off <= worst)) {{ worst = off; }}
            if (actions != NULL) {{ fprintf(actions, "%.17g{end}", found); }}
        }}"""


def c_bench(routine: Routine, name: str, precision: Precision, tolerance: float) -> tuple[str, str]:
    """Return the test bench for C, which reads vectors.csv.

    Args:
        routine: The routine that was exported.
        name: The name of the export, as the user gave it.
        precision: The precision of the export.
        tolerance: The largest allowed difference, relative to an action's range.

    Returns:
        The name of the file, and its text.
    """
    unit = c_unit(routine, name, precision)
    cast = "(float)" if precision.name == "single" else ""
    inputs = routine.inputs
    homes = ["input" if one.default is None else "memory" for one in inputs]
    lines = [
        f"        {home}.{unit.members[one.variable]} = "
        + (f"row[{k}] > 0.5;" if one.flag else f"{cast}row[{k}];")
        for k, (home, one) in enumerate(zip(homes, inputs, strict=True), 2)
    ]
    if not routine.observed:
        lines.append("        input.unused = 0;")
    first, comparisons = 2 + len(inputs), []
    results = [(unit.members[one.action], _range(one, first + k)) for k, one in enumerate(routine.outputs)]
    results += [(unit.members[one.target], "1.0") for one in routine.reports]
    columns = first + len(results)
    for column, (member, span) in enumerate(results, first):
        end = "\\n" if column == columns - 1 else ","
        comparisons.append(_COMPARISON.format(member=member, range=span, column=column, end=end))
    text = _BENCH.format(
        name=unit.prefix,
        flags=" ".join(FLAGS),
        columns=columns,
        length=4096 + 32 * columns,
        tolerance=repr(tolerance),
        assignments="\n".join(lines),
        comparisons="\n".join(comparisons),
    )
    return f"{unit.prefix}_bench.c", text


def _range(output: Output, column: int) -> str:
    """Return the range of an action as C: from limit to limit, or its own magnitude."""
    if output.limits:
        return repr(output.limits[1] - output.limits[0])
    return f"fmax(fabs(row[{column}]), 1.0)"


@dataclass(frozen=True, kw_only=True)
class CallRows:
    """The inputs of N calls of a function block, and the actions that are expected.

    Attributes:
        inputs: [N, I] the inputs, in the order of the block.
        actions: [N, A] the expected actions, in the order of the block's outputs.
        ranges: [N, A] the range that a difference is relative to.
        first: [N] whether the block is restarted in this call.
        compared: [N] whether the call is compared; not if the last places of a number decide.
        tolerance: The largest allowed difference, relative to the range.
    """

    inputs: Sequence[Sequence[float]]
    actions: Sequence[Sequence[float]]
    ranges: Sequence[Sequence[float]]
    first: Sequence[bool]
    compared: Sequence[bool]
    tolerance: float


def bench_program(block: Pou, rows: CallRows, precision: Precision) -> str:
    """Return a program in Structured Text that compares the actions of a block with the expected ones."""
    return _Bench(block, rows, precision).text()


class _Bench:
    def __init__(self, block: Pou, rows: CallRows, precision: Precision) -> None:
        self.block, self.rows, self.precision = block, rows, precision
        own = {"tested", "row", "done", "worst", "equal", "first", "compared"}
        self.names = Names({*RESERVED, *own, block.name}, ignore_case=True)
        self.name = self.names.give("program", f"{block.name}_bench")
        self.tables: list[Declaration] = []

    def text(self) -> str:
        remembers = any(one.name == "restart" for one in self.block.section("VAR_INPUT"))
        given = [one for one in self.block.section("VAR_INPUT") if one.name != "restart"]
        call = [f"{one.name} := {self._input(one, k)}[row]" for k, one in enumerate(given)]
        if remembers:
            self._flags("first", self.rows.first)
            call.append("restart := first[row]")
        self._flags("compared", self.rows.compared)
        lines = [
            f"FOR row := 1 TO {len(self.rows.inputs)} DO",
            f"{STEP}tested({', '.join(call)});",
            f"{STEP}IF compared[row] THEN",
            *(f"{STEP}{STEP}{line}" for line in self._comparisons()),
            f"{STEP}END_IF;",
            "END_FOR;",
            f"equal := worst <= {st_literal(self.rows.tolerance, self.precision)};",
            "done := TRUE;",
        ]
        body = ["IF NOT done THEN", *(STEP + line for line in lines), "END_IF;"]
        words = (
            f"Test bench of {self.block.name}: run it once, then check that equal is TRUE.",
            "worst is the largest difference from the expected actions, relative to the action's range.",
        )
        return "\n".join(
            [
                *comment(words),
                f"PROGRAM {self.name}",
                "VAR CONSTANT",
                *(line for one in self.tables for line in declared_lines(one)),
                "END_VAR",
                "VAR",
                *(line for one in self._variables() for line in declared_lines(one)),
                "END_VAR",
                "",
                *(part for line in body for part in folded_lines(line.strip(), line[: -len(line.lstrip())])),
                "END_PROGRAM",
                "",
            ]
        )

    def _variables(self) -> list[Declaration]:
        kind = real(self.precision)
        return [
            Declaration("VAR", "tested", self.block.name),
            Declaration("VAR", "row", "DINT"),
            Declaration("VAR", "done", "BOOL"),
            Declaration("VAR", "worst", kind),
            Declaration("VAR", "equal", "BOOL"),
        ]

    def _input(self, one: Declaration, column: int) -> str:
        """Declare the values of an input, and return the name of their array."""
        if one.type != "BOOL":
            return self._table(one.name, "given", column)
        table = self.names.give((one.name, "given"), f"{one.name}_given")
        self._flags(table, [bool(row[column]) for row in self.rows.inputs])
        return table

    def _table(self, name: str, word: str, column: int) -> str:
        """Declare an array of constants with a value for each row, and return its name."""
        rows = self.rows.inputs if word == "given" else self.rows.actions
        table = self.names.give((name, word), f"{name}_{word}")
        values = tuple(st_literal(row[column], self.precision) for row in rows)
        self.tables.append(Declaration("VAR CONSTANT", table, real(self.precision), values, (1, len(rows))))
        return table

    def _flags(self, name: str, flags: Sequence[bool]) -> None:
        values = tuple(str(bool(flag)).upper() for flag in flags)
        self.tables.append(Declaration("VAR CONSTANT", name, "BOOL", values, (1, len(values))))

    def _comparisons(self) -> list[str]:
        lines = []
        compared = self.block.section("VAR_OUTPUT")[: len(self.rows.actions[0])]
        for column, output in enumerate(compared):
            wanted, found = f"{self._table(output.name, 'expected', column)}[row]", f"tested.{output.name}"
            if output.type == "DINT":
                found = f"DINT_TO_{real(self.precision)}({found})"
            ranges = {row[column] for row in self.rows.ranges}
            size = (
                st_literal(ranges.pop(), self.precision) if len(ranges) == 1 else f"MAX(ABS({wanted}), 1.0)"
            )
            lines.append(f"worst := MAX(worst, ABS({found} - {wanted}) / {size});")
        return lines


# A PLC gets few test vectors, without numbers that a compiler might refuse.

_MOST_ROWS = 200
_SMALLEST, _LARGEST = 1e-9, 1e9


def plc_bench(
    controller: Controller,
    routine: Routine,
    name: str,
    precision: Precision,
    expectation: Expectation,
    options: frozenset[str] = frozenset(),
) -> str:
    """Return the test bench for the PLC, with rows from all over the test vectors.

    Only episodes in which nobody holds, limits or replaces the action of the law are among them: a restart,
    which separates the episodes, does not reset the last action.
    """
    starts, tame, start = [], [], 0
    width = len(routine.outputs) + bool(routine.reports)  # the counter of steps goes on in a restart
    for episode in expectation.episodes:
        if _is_tame(episode) and _is_of_the_law(routine, episode, expectation, start):
            tame.append(episode)
            starts.append(start)
        start += len(episode)
    every = -(-sum(map(len, tame)) // _MOST_ROWS)
    steps, first, inputs = [], [], []
    for begin, episode in list(zip(starts, tame, strict=True))[:: max(every, 1)]:
        for index, values in enumerate(episode):
            steps.append(begin + index)
            first.append(index == 0)
            inputs.append([values[one.variable] for one in routine.inputs])
    if not steps:  # no episode is valid: a row of zeros, which is not compared
        steps, first, inputs = [0], [True], [[0.0] * len(routine.inputs)]
        expectation = replace(expectation, compared=np.zeros_like(expectation.compared))
    block = pous(controller, name, precision, options, guard=bool(routine.reports))[-1]
    rows = CallRows(
        inputs=inputs,
        actions=expectation.actions[steps, :width].tolist(),
        ranges=expectation.ranges[steps, :width].tolist(),
        first=first,
        compared=expectation.compared[steps].tolist(),
        tolerance=expectation.tolerance,
    )
    return bench_program(block, rows, precision)


def _is_tame(episode: Episode) -> bool:
    return all(v == 0 or _SMALLEST <= abs(v) <= _LARGEST for step in episode for v in step.values())


def _is_of_the_law(routine: Routine, episode: Episode, expectation: Expectation, first: int) -> bool:
    """Return whether all inputs of an episode are valid, and modes and parameters as they are at first."""
    status = expectation.actions[first : first + len(episode), len(routine.outputs) :][:, :1].astype(int)
    others = {one.variable: one.default for one in routine.inputs if one.role}
    changed = any(step[name] != value for step in episode for name, value in others.items())
    return not ((status & _INVALID).any() or changed)


_INVALID = sum(STATUS[sign][0] for sign in ("outside", "gradient", "frozen", "marked"))
