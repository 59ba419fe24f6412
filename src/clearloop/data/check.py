"""`clearloop data check`: all that is wrong with a log, or good to know before learning from it."""

from typing import Any

from clearloop.data.batch import Batch
from clearloop.data.causality import check_causality
from clearloop.data.course import Course
from clearloop.data.coverage import check_coverage
from clearloop.data.episodes import count_failing, summarize
from clearloop.data.excitation import check_excitation
from clearloop.data.kinship import check_rates
from clearloop.data.log import Log
from clearloop.data.preparation import prepare
from clearloop.data.report import Finding, Report
from clearloop.data.sampling import check_sampling
from clearloop.data.sensors import check_sensors
from clearloop.task import Task

# Rules of thumb: enough for a network's training, and for the part that is held out from it.
FEW_TRANSITIONS, FEWEST_TRANSITIONS = 1_000, 100
TELLS_NOTHING = {"constant-action", "saturated-action", "determined-action", "few-moves"}
FOR_EACH_INPUT = 5  # transitions at least, for each number that a model sees
FEW_FAILURES = 50


def check(data: Any, task: Task) -> Report:
    """Examines a batch, or any dataframe, one that `Batch` refuses included."""
    log = prepare(data.to_frame() if isinstance(data, Batch) else data, task)
    episodes = int(log.episodes[-1]) + 1 if len(log.episodes) else 0
    transitions = len(log.episodes) - episodes
    failing = count_failing(log.episodes, log.terminal)
    findings = [*log.problems, *log.done]
    if transitions:
        course = Course.of(log)
        excitation = list(check_excitation(log, course, task))
        doubtful = {
            finding.numbers["name"]
            for finding in excitation
            if finding.severity == "problem" and finding.code in TELLS_NOTHING
        }
        findings += [
            _size(transitions, episodes, task),
            *_failures(failing, transitions, task, log),
            *check_sampling(log.times, log.episodes, task.dt),
            *excitation,
            *check_causality(course, task, doubtful),
            *check_rates(log, task),
            *check_sensors(log, task),
            *check_coverage(log, task),
        ]
    return Report.of(summarize(transitions, episodes, failing), findings)


def _size(transitions: int, episodes: int, task: Task) -> Finding:
    needed = max(FEWEST_TRANSITIONS, FOR_EACH_INPUT * task.history * (len(task.states) + len(task.actions)))
    numbers = {"transitions": transitions, "episodes": episodes}
    if transitions >= max(FEW_TRANSITIONS, needed):
        return Finding("ok", "size", f"{transitions:,} transitions", numbers)
    if transitions >= needed:
        message = f"only {transitions:,} transitions: most plants need thousands"
        return Finding("warning", "size", message, numbers)
    message = (
        f"only {transitions:,} transitions, too few for any model: log {needed:,} at least, better thousands"
    )
    return Finding("problem", "size", message, numbers)


def _failures(failing: int, transitions: int, task: Task, log: Log) -> list[Finding]:
    if failing >= FEW_FAILURES or (task.failure_level is None and not log.terminal.any()):
        return []
    message = f"only {failing:,} of {transitions:,} transitions fail: too few to learn what failure is"
    return [Finding("warning", "few-failures", message, {"failing": failing, "needed": FEW_FAILURES})]
