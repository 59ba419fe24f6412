"""A PID from a log: what the present controller is, what the plant is, and which numbers are better.

1. The present controller is the one that is given, or the law that the log shows (`explanation`).
2. The plant is a transfer function (`transfer.py`). Where that explains the log less well than the linear
   model (`identification.py`), as for a plant that runs away, it is the latter. In both cases there are
   others that differ from it by its errors, and rivals, which another look at the log shows.
3. Rules that engineers trust give gains from its step response (`pid_rules.py`).
4. A search finds the gains with the least ∫|e| dt after a step of the load (`pid_search.py`). On the model,
   and a little wider on the others of step 2, the largest sensitivity Ms is limited, and so is what noise of
   the measurement moves the action by. The loop crosses over only where the log tells the plant's gain.
5. If no such numbers are found, the present ones are proposed: what the log does not tell is not tried.

All of it is for one loop from one action to one state, linear about where the log was.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.arrays import Floats
from clearloop.controllers import Controller, pid
from clearloop.data import Batch
from clearloop.errors import ClearloopError, UnsuitableError, quoted
from clearloop.explanation import begin_at_mean, explain
from clearloop.methods.linear_model import LinearModel, find_process_variables, identify, pair_loops
from clearloop.methods.pid_rules import (
    LONGEST,
    Assessment,
    Bench,
    Gains,
    Process,
    Shape,
    find_shape,
    processes,
    rules,
)
from clearloop.methods.pid_search import DOUBT, Limits, search
from clearloop.methods.transfer import find_transfer
from clearloop.numbers import json_values, percent, plain
from clearloop.task import Task

CLEARER = 1.03  # another model whose errors of one step are larger by less than this is as good there


@dataclass(frozen=True)
class Row:
    """Gains with what they do.

    Attributes:
        name: How they were found.
        gains: The gains.
        found: What they do by the linear model.
        doubt: The standard error of the plant's gain where the loop crosses over, as a share of it.
    """

    name: str
    gains: Gains
    found: Assessment
    doubt: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        gains = {name: json_values(value) for name, value in self.gains._asdict().items()}
        return {"name": self.name, **gains, **self.found.to_dict(), "doubt": json_values(self.doubt)}


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `tune` found for one loop.

    Attributes:
        task: The task.
        state: The state that is controlled.
        action: The action that controls it.
        verdict: What the present controller is, in words.
        rows: The present gains if they are known, the rules, and the search.
        picked: The number of the row that is proposed.
        controller: The proposed controller.
        bench: The plant by the linear model.
        shape: The plant as the rules see it; None if it has no such shape.
        plant: The plant with what the log leaves open.
        limits: What the search kept.
        refused: The row that would be proposed if the log supported it; None if it does, or if there are no
            present numbers to keep.
    """

    task: Task
    state: str
    action: str
    verdict: str
    rows: tuple[Row, ...]
    picked: int
    controller: Controller
    bench: Bench
    shape: Shape | None
    plant: "Plant"
    limits: Limits
    refused: Row | None = None

    @property
    def supported(self) -> bool:
        """True if the log tells what new numbers do."""
        return self.refused is None and self.rows[self.picked].doubt <= DOUBT

    @property
    def words(self) -> str:
        """One sentence about how far the log supports the proposal."""
        one = self.refused or self.rows[self.picked]
        period = f"{plain(2 * math.pi / one.found.crossover)} s" if one.found.crossover else "long"
        where = f"where {'' if self.supported else 'such '}a loop crosses over (a period of {period})"
        known = f"the plant's gain is known to within {percent(max(one.doubt, 0.01), 0)} {where}"
        if self.supported:
            return f"The log supports these numbers: {known}."
        if self.refused is not None:
            return (
                f"The log does not support other numbers: for {self.refused.name}, {known}. Keep what is "
                "there, or log steps of the setpoint or of the action, larger or more of them."
            )
        return (
            f"The log does not support these numbers: {known}. Log steps of the setpoint or of the action, "
            "larger or more of them."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "task": self.task.name, "state": self.state, "action": self.action, "verdict": self.verdict,
            "rows": [row.to_dict() for row in self.rows], "picked": self.rows[self.picked].name,
            "supported": self.supported, "words": self.words,
        }  # fmt: skip


def tune(
    task: Task,
    batch: Batch,
    controller: Controller | None = None,
    *,
    limits: Limits | None = None,
    structure: str | None = None,
) -> Tuning:
    """Find new numbers for a PID from a log.

    Args:
        task: The task.
        batch: The log, under a controller or not.
        controller: The present controller, a PID of one loop; None takes what the log shows.
        limits: What the new numbers must keep.
        structure: PI or PID; None keeps the present one, or is PI without one.

    Returns:
        The present numbers, those of rules, and those of a search, side by side.

    Raises:
        ClearloopError: If the controller is not a PID of one loop.
        UnsuitableError: If the log does not show the plant.
    """
    with threadpool_limits(limits=1, user_api="blas"):  # the matrices are small
        return _tune(task, batch, controller, limits, structure)


def _tune(
    task: Task, batch: Batch, controller: Controller | None, limits: Limits | None, structure: str | None
) -> Tuning:
    verdict, present = _present(task, batch, controller)
    model = identify(task, batch)
    action, state = (present.action, present.state) if present else _pair(model, task, batch)
    plant = _plant(model, task, batch, state, action)
    if plant is None:
        raise UnsuitableError(
            "tune: free runs of the linear model do not follow the log, so its numbers would mean little: "
            "log steps of the setpoint or of the action, larger ones, or with less happening beside them"
        )
    gains = present.gains if present else None
    shape = find_shape(plant.process, task.dt)
    steps = _steps(shape, plant.process, task.dt)
    benches = [Bench(one, task.dt, steps) for one in (plant.process, *plant.others, *plant.rivals)]
    limits = _with_noise(limits or Limits(), benches[0], gains, shape)
    ruled = list(rules(shape, benches[0], limits.time_constant)) if shape is not None else []
    named = [*([] if gains is None else [("present", gains)]), *ruled]
    if not named:
        raise UnsuitableError(
            f"tune: {state} runs away by itself or does not answer {action}, and no present PID is known to "
            "start from"
        )
    letters = structure or ("PID" if gains is not None and gains.td else "PI")
    starts = [one for _, one in ([*ruled, *named[:1]] if ruled else named)]
    named += _searched(benches, starts, limits, letters, gains, plant.doubts(benches[0].z))
    rows = tuple(Row(name, one, benches[0].assess(one), plant.doubt(benches[0], one)) for name, one in named)
    picked, refused = _pick(rows, letters, limits), None
    if gains is not None and rows[picked].doubt > DOUBT and rows[0].found.stable:
        picked, refused = 0, rows[picked]
    title = f"tuned: {rows[picked].name}" if refused is None else "as logged: the log supports no others"
    loops = _proposed(rows[picked].gains, state, task.dt, present)
    new = begin_at_mean(pid.PID(name=title, outputs={action: loops}).for_task(task), task, batch)
    return Tuning(task, state, action, verdict, rows, picked, new, benches[0], shape, plant, limits, refused)


def _searched(
    benches: Sequence[Bench],
    starts: Sequence[Gains],
    limits: Limits,
    letters: str,
    present: Gains | None,
    doubts: Floats,
) -> Iterator[tuple[str, Gains]]:
    """Yield the gains that a search finds for each structure, first for the one that is asked for.

    Where no gains keep the limits on all plants, those that keep them on the plant itself are taken.
    """
    for kind in dict.fromkeys((letters, "PI", "PID")):
        held = present if kind == letters else None
        best = search(benches, starts, limits, kind, held, doubts) or search(
            benches[:1], starts, limits, kind, held
        )
        if best is not None:
            yield f"search {kind}", best
            starts = [*starts, best]


def _proposed(gains: Gains, state: str, dt: float, present: "_Present | None") -> pid.Loops:
    """Return the loop with new gains, with what else the present controller does."""
    loop = gains.loop(state, dt)
    if present is None:
        return pid.Loops(loops=(loop,))
    before = present.output
    loops = pid.Loops(bias=before.bias, loops=(loop,))
    return loops.model_copy(update={"feedforward": before.feedforward, "rate": before.rate})


@dataclass(frozen=True)
class _Present:
    """The loop of the present controller, with its gains."""

    action: str
    output: pid.Loops
    gains: Gains

    @property
    def state(self) -> str:
        return self.output.chain[0].state


def _present(task: Task, batch: Batch, controller: Controller | None) -> tuple[str, _Present | None]:
    """Return what the present controller is, in words, and its loop, if a search can start from it."""
    if len(task.actions) > 1:
        raise ClearloopError(
            f"tune: works on one loop, and the task has {len(task.actions)} actions: draft a task for each, "
            "with clearloop init LOG --action ACTION --state STATE --out LOOP.toml"
        )
    account = None
    if controller is None:
        account = explain(*_measured(task, batch))
        verdict = account.verdict
        if account.accounts[0].chosen != "law":
            return verdict, None
        controller = account.controller()
        if not isinstance(controller, pid.PID):
            return f"{verdict} It is no PID, so the new numbers do not start from it.", None
        ((action, output),) = controller.outputs.items()
        if len(output.chain) > 1:
            states = " and ".join(loop.state for loop in output.chain)
            raise UnsuitableError(
                f"tune: {verdict} It has loops on {states}, which hold the plant together, and tune works on "
                "one: its numbers would leave out the others. data explain --out writes it as a controller, "
                "and learn --method pid searches all loops together. If only one of these states belongs to "
                "the loop, draft the task with it alone: init --state STATE"
            )
    else:
        verdict = f"The controller that is given: {controller.summary}."
    if not isinstance(controller, pid.PID):
        raise ClearloopError(
            f"tune: expected a controller of kind 'pid', not of kind {quoted(controller.kind)}"
        )
    ((action, output),) = controller.outputs.items()
    if len(output.chain) != 1 or output.chain[0].schedule is not None:
        raise ClearloopError(
            "tune: expected one loop without a schedule; tune the loops of several one by one"
        )
    gains = Gains.of(output.chain[0], output.gain_of(0), task.dt)
    if account is not None and min(gains.ti, gains.td) < 0:  # a lead or lag, in the form of a PID
        return (
            f"{verdict} With a time below 0 it is no usual PID: the new numbers do not start from it.",
            None,
        )
    return verdict, _Present(action, output, gains)


def _measured(task: Task, batch: Batch) -> tuple[Task, Batch]:
    """Return the task and the log without computed states, such as sums: a PID computes these itself."""
    if not task.derived:
        return task, batch
    table = task.model_dump(mode="json", exclude_none=True)
    table["states"] = {name: one for name, one in table["states"].items() if name not in task.derived}
    plain = {"reward": {"expression": "0"}, "starts": {"from": "batch"}}
    kept = {
        name: table[name] for name in ("name", "dt", "discount", "horizon", "history", "states", "actions")
    }
    bare = Task.from_dict(kept | plain)
    columns = [task.state_names.index(name) for name in bare.state_names]
    return bare, replace(batch, columns=bare.columns, states=batch.states[:, columns])


def _pair(model: LinearModel, task: Task, batch: Batch) -> tuple[str, str]:
    """Return the action and the state that it is to control: one with a setpoint, or that it moves most."""
    aimed = [name for name in task.setpoints if name in task.predicted]
    wanted = aimed or [one for one in find_process_variables(task, batch) if one in task.predicted]
    state, action = pair_loops(model, wanted or list(task.predicted), {})[0]
    return action, state


@dataclass(frozen=True, eq=False)
class Plant:
    """The plant from an action to a state, with what the log leaves open.

    Attributes:
        process: The plant.
        others: Plants that differ from it by its errors.
        rivals: Plants that another look at the log shows, if they differ by more than chance.
    """

    process: Process
    others: tuple[Process, ...]
    rivals: tuple[Process, ...]

    def doubt(self, bench: Bench, gains: Gains) -> float:
        """Return how far the plant's response at the crossover is unknown, as a share of it.

        It is the standard error, or what a rival differs by.
        """
        first = bench.assess(gains)
        if not first.crossover:
            return math.inf if not first.stable else 0.0
        return float(self.doubts(np.exp(1j * np.array([first.crossover * bench.dt])))[0])

    def doubts(self, z: Any) -> Floats:
        """Return how far the response is unknown [F] at points [F] of the unit circle."""
        middle, found = self.process.response(z), [np.zeros(len(z))]
        if self.others:
            off = [np.abs(one.response(z) / middle - 1) for one in self.others]
            found.append(np.median(off, axis=0))
        found += [np.abs(one.response(z) / middle - 1) for one in self.rivals]
        return np.asarray(np.max(found, axis=0))


def _plant(model: LinearModel, task: Task, batch: Batch, state: str, action: str) -> Plant | None:
    """Return the plant by the model that explains the log better; None if none follows the log."""
    error = float(model.equations.residual[task.predicted.index(state)])
    found = find_transfer(task, batch, state, action)
    if found is not None and found.follows and found.residual < CLEARER * error:
        return Plant(found.process, found.others, found.rivals)
    if not model.equations.follows:
        return None
    first, *others = processes(model, state, action, np.random.default_rng(0))
    return Plant(first, tuple(others), ())


def _steps(shape: Shape | None, process: Process, dt: float) -> int:
    """Return the length of responses: long enough for slow loops."""
    if shape is None:
        return 2_000
    slowest = shape.delay * 60 if shape.integrates else 12 * (shape.lag + shape.delay) + 20 * shape.delay
    return int(np.clip(slowest / dt + 10 * len(process.b), 300, LONGEST))


def _with_noise(limits: Limits, bench: Bench, present: Gains | None, shape: Shape | None) -> Limits:
    """Return the limits with the noise that the loop may pass on, where none is given.

    It is twice what the present loop passes on, or ten times the inverse static gain, whichever is more.
    """
    if math.isfinite(limits.noise):
        return limits
    known = []
    if present is not None and math.isfinite(bench.sensitivity(present)):
        known.append(2 * bench.noise(present))
    if shape is not None:
        lag = 10 * shape.delay if shape.integrates else 1.0
        known.append(10 / abs(shape.gain * lag))
    most = max(known, default=math.inf)
    return replace(limits, noise=most)


def _pick(rows: Sequence[Row], letters: str, limits: Limits) -> int:
    """Return the row to propose: the search of the structure, or with a time constant the rule for it."""
    names = [row.name for row in rows]
    wanted = "SIMC PI" if limits.time_constant is not None else f"search {letters}"
    if wanted in names:
        return names.index(wanted)
    fine = [k for k, row in enumerate(rows) if row.found.stable]
    if not fine:
        raise UnsuitableError("tune: no numbers make a stable loop by the linear model: keep what is there")
    return min(fine, key=lambda k: (rows[k].found.ms > limits.ms, rows[k].found.load))
