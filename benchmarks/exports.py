"""What one call of exported C takes: the published GPRL equation, of complexity 15, compiled on its own."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from clearloop import published
from clearloop.controllers import Controller, load
from clearloop.exports import export
from clearloop.task import Task
from clearloop.verification.testbench import FLAGS

CALLS = 20_000_000

_MAIN = """
#include "law.h"
#include <stdio.h>
#include <time.h>

int main(void)
{
    law_memory memory;
    law_output output;
    double sum = 0.0, best = 1e9;
    law_init(&memory);
    for (int round = 0; round < 5; round++) {
        const clock_t begin = clock();
        for (int k = 0; k < %d; k++) {
            const double x = 1e-8*(double)k;
            const law_input input = { x, -x, x, -x };
            law_step(&memory, &input, &output);
            sum += output.force;
        }
        const double seconds = (double)(clock() - begin)/(double)CLOCKS_PER_SEC;
        best = seconds < best ? seconds : best;
    }
    printf("%%.17g %%.17g\\n", best, sum);
    return 0;
}
"""


def equation() -> Controller:
    return load(Path(published.__file__).parent / "gprl.json").for_task(Task.load("cartpole"))


def nanoseconds() -> float | None:
    """For one call, the best of some rounds; None where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    with TemporaryDirectory() as folder:
        files = export(equation(), to="c", name="law") | {"main.c": _MAIN % CALLS}
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        build = [compiler, *FLAGS, "law.c", "main.c", "-lm", "-o", "run"]
        subprocess.run(build, cwd=folder, check=True)  # noqa: S603 - our own words
        done = subprocess.run([f"{folder}/run"], capture_output=True, text=True, check=True)  # noqa: S603
    return 1e9 * float(done.stdout.split()[0]) / CALLS
