"""Test vectors that a PLC can take: few, and no numbers that a compiler may not like."""

from clearloop.controllers import Controller
from clearloop.export.precision import Precision
from clearloop.export.routine import Routine
from clearloop.export.structured_text.bench import Rows, bench
from clearloop.export.structured_text.printing import pous
from clearloop.verification.expectation import Expectation
from clearloop.verification.vectors import Episode

MOST_ROWS = 200
SMALLEST, LARGEST = 1e-9, 1e9


def plc_bench(
    controller: Controller, routine: Routine, name: str, precision: Precision, expectation: Expectation
) -> str:
    """A program in Structured Text, with rows from all over the test vectors."""
    starts, tame, start = [], [], 0
    for episode in expectation.episodes:
        if _is_tame(episode):
            tame.append(episode)
            starts.append(start)
        start += len(episode)
    every = -(-sum(map(len, tame)) // MOST_ROWS)
    steps, first, inputs = [], [], []
    for begin, episode in list(zip(starts, tame, strict=True))[:: max(every, 1)]:
        for number, values in enumerate(episode):
            steps.append(begin + number)
            first.append(number == 0)
            inputs.append([values[one.variable] for one in routine.inputs])
    rows = Rows(
        inputs=inputs,
        actions=expectation.actions[steps].tolist(),
        ranges=expectation.ranges[steps].tolist(),
        first=first,
        compared=expectation.compared[steps].tolist(),
        tolerance=expectation.tolerance,
    )
    return bench(pous(controller, name, precision)[-1], rows, precision)


def _is_tame(episode: Episode) -> bool:
    return all(v == 0 or SMALLEST <= abs(v) <= LARGEST for step in episode for v in step.values())
