"""The methods of a run, one after the other: each from where it stopped, and none twice."""

from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter

from clearloop.controllers import save
from clearloop.data import Batch
from clearloop.methods import Method, Problem, Result, Search, learn
from clearloop.methods.result import JUDGED_STARTS
from clearloop.runs.checkpoint import read_state, write_state
from clearloop.runs.directory import RunDirectory
from clearloop.runs.front import Front, Known
from clearloop.runs.interruption import Interruption
from clearloop.runs.judgement import method_rng
from clearloop.runs.ledger import Ledger
from clearloop.runs.planned import Scored
from clearloop.runs.published import score_published
from clearloop.runs.results import result_from_state, result_to_state
from clearloop.runs.tuning import write_tuning
from clearloop.runs.watching import Tell, Watcher
from clearloop.surrogate import Surrogate
from clearloop.task import Task


def run_method(
    run: RunDirectory,
    method: Method,
    task: Task,
    batch: Batch,
    surrogate: Surrogate,
    *,
    budget: int,
    value: str = "model",
    seed: int,
    ledger: Ledger,
    tell: Tell,
    interruption: Interruption,
) -> Result:
    """What the method finds; from its checkpoint, if it was begun or even finished before."""
    checkpoint = run.folder("checkpoint") / f"{method.name}.safetensors"
    begun = read_state(checkpoint) if checkpoint.exists() else {}
    if "result" in begun:
        return result_from_state(begun["result"])
    watcher = Watcher(
        method.name, checkpoint, ledger, tell=tell, interruption=interruption, begun=begun, budget=budget
    )

    def watch(search: Search, problem: Problem) -> None:
        if search.trials and (search.done or problem.share >= 1):
            write_tuning(run, search.trials)
        watcher(search, problem)

    result = learn(
        task,
        batch,
        method,
        rng=method_rng(seed),
        budget=budget,
        value=value,
        surrogate=surrogate,
        watch=watch,
        resume=begun.get("learning"),
    )
    ledger.took("judgement", perf_counter() - watcher.ended, method=method.name)
    write_state({"result": result_to_state(result)}, checkpoint)
    if interruption.asked:
        raise KeyboardInterrupt
    return result


def finish(run: RunDirectory, task: Task, surrogate: Surrogate, results: Sequence[Result]) -> Front:
    """Write the controllers and the front; checkpoints are no longer needed."""
    front = Front.of(results, *_published(task, surrogate))
    folder = run.folder("controllers")
    points = [point for result in results for point in result.points]
    for entry, point in zip(front.entries, points, strict=True):
        save(point.controller.for_task(task), folder / f"{entry.controller}.json")
    for controller in (point.controller for result in results for point in result.beside):
        save(controller.for_task(task), folder / f"{controller.name}.json")
    front.write(run)
    judges = f"{JUDGED_STARTS:,} other starts"
    if any(point.judged.on == "batch" for point in points):
        judges += ", by fitted Q evaluation of the batch"
    elif surrogate.track.judge:
        judges += f" and {surrogate.track.judge} other models"
    pick = {"controller": front.entries[front.pick].controller, "reason": front.reason(judges)}
    run.mark("finished", pick=pick)
    (run.path / "candidates.csv").unlink(missing_ok=True)
    for checkpoint in run.path.glob("checkpoint/*.safetensors"):
        checkpoint.unlink()
    with suppress(OSError):  # not there, or somebody keeps more in it
        (run.path / "checkpoint").rmdir()
    return front


def _published(task: Task, surrogate: Surrogate) -> tuple[list[Known], list[Scored]]:
    """On the scoring set, like the front."""
    rows, scores = [], []
    for known, model, system in score_published(task, surrogate):
        scores.append(Scored(known.file, False, model, system))
        rows.append(
            Known(
                known.file,
                known.title,
                model.penalty,
                system.penalty,
                system.failures,
                known.system is not None,
            )
        )
    return rows, scores
