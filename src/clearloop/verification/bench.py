"""The test bench that stands beside an export: vectors with the expected actions, and for C a program."""

import csv
import io

from clearloop.export.c import c_unit
from clearloop.export.precision import Precision
from clearloop.export.routine import Routine
from clearloop.verification.expectation import Expectation

FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-ffp-contract=off")


def vectors_csv(routine: Routine, expectation: Expectation) -> str:
    """A row for each step: its episode, whether to compare it, inputs, setpoints, expected actions."""
    inputs = [one.variable for one in (*routine.observed, *routine.parameters)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    actions = [output.action.name for output in routine.outputs]
    writer.writerow(["episode", "compare", *map(str, inputs), *actions])
    step = 0
    for number, episode in enumerate(expectation.episodes):
        for values in episode:
            wanted = expectation.actions[step].tolist()
            row = [repr(values[name]) for name in inputs] + [repr(value) for value in wanted]
            writer.writerow([number, int(expectation.compared[step]), *row])
            step += 1
    return text.getvalue()


_BENCH = """/*
 * Test bench: runs the controller on the rows of vectors.csv and compares what it does.
 *   cc {flags} {name}.c {name}_bench.c -lm -o {name}_bench
 *   ./{name}_bench vectors.csv              prints the largest difference, relative to the action's range
 *   ./{name}_bench vectors.csv actions.csv  also writes every action
 */
#include "{name}.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS {columns}

/* the numbers of a line; 0 at the end of the file */
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
    read_row(file, row); /* the names */
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
    """The file's name and text: a program that reads vectors.csv."""
    unit = c_unit(routine, name, precision)
    cast = "(float)" if precision.name == "single" else ""
    inputs = [*routine.observed, *routine.parameters]
    homes = ["input" if one.default is None else "memory" for one in inputs]
    lines = [
        f"        {home}.{unit.members[one.variable]} = {cast}row[{k}];"
        for k, (home, one) in enumerate(zip(homes, inputs, strict=True), 2)
    ]
    if not routine.observed:
        lines.append("        input.unused = 0;")
    first, comparisons = 2 + len(inputs), []
    for number, output in enumerate(routine.outputs):
        column = first + number
        span = (
            repr(output.limits[1] - output.limits[0]) if output.limits else f"fmax(fabs(row[{column}]), 1.0)"
        )
        end = ",\\n"[1:] if output is routine.outputs[-1] else ","
        member = unit.members[output.action]
        comparisons.append(_COMPARISON.format(member=member, range=span, column=column, end=end))
    columns = first + len(routine.outputs)
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
