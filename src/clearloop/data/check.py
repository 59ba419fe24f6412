"""`clearloop data check`: all that is wrong with a log, or good to know before learning from it."""

from typing import Any

from clearloop.data.batch import Batch
from clearloop.data.coverage import check_coverage
from clearloop.data.episodes import count_failing, summarize
from clearloop.data.excitation import check_excitation
from clearloop.data.log import Log
from clearloop.data.preparation import prepare
from clearloop.data.report import Finding, Report
from clearloop.data.sampling import check_sampling
from clearloop.task import Task

# Rules of thumb: enough for a network's training, and for the part that is held out from it.
FEW_TRANSITIONS = 1_000
FEW_FAILURES = 50


def check(data: Any, task: Task) -> Report:
    """Examines a batch, or any dataframe, one that `Batch` refuses included."""
    log = prepare(data.to_frame() if isinstance(data, Batch) else data, task)
    episodes = int(log.episodes[-1]) + 1 if len(log.episodes) else 0
    transitions = len(log.episodes) - episodes
    failing = count_failing(log.episodes, log.terminal)
    findings = [*log.problems, *log.done]
    if transitions:
        findings += [
            _size(transitions, episodes),
            *_failures(failing, transitions, task, log),
            *check_sampling(log.times, log.episodes, task.dt),
            *check_excitation(log, task),
            *check_coverage(log, task),
        ]
    return Report.of(summarize(transitions, episodes, failing), findings)


def _size(transitions: int, episodes: int) -> Finding:
    numbers = {"transitions": transitions, "episodes": episodes}
    if transitions >= FEW_TRANSITIONS:
        return Finding("ok", "size", f"{transitions:,} transitions", numbers)
    message = f"only {transitions:,} transitions: most plants need thousands"
    return Finding("warning", "size", message, numbers)


def _failures(failing: int, transitions: int, task: Task, log: Log) -> list[Finding]:
    if failing >= FEW_FAILURES or (task.failure_level is None and not log.terminal.any()):
        return []
    message = f"only {failing:,} of {transitions:,} transitions fail: too few to learn what failure is"
    return [Finding("warning", "few-failures", message, {"failing": failing, "needed": FEW_FAILURES})]
