"""Robust search: what candidates must bear (`[robust]` of a task), and how far they are from bearing it.

Half of the starts of a search are disturbed: the action comes late, with another gain now and then, and
sensors are noisy. Rollouts alone do not give margins, so each candidate is linearised, too: its law by
differences at the usual operating point, the plant as the mean of the models there. What it lacks of the
margins adds to its penalty, so that a search tunes its way to them. The judgement then linearises each
controller of the front at its own steady state, on every model that judges.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from clearloop.arrays import Flags, Floats
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.log import usual_setpoints
from clearloop.errors import ClearloopError
from clearloop.evaluation.linearisation import essential, find_slopes, lengthened, linearise, needed
from clearloop.evaluation.stability import (
    MOST_STEPS,
    LoopMargins,
    Response,
    bears,
    find_loop_margins,
    frequencies,
    respond,
    sum_lags,
)
from clearloop.evaluation.stepping import Stepper, unlimited
from clearloop.expression import parse
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import DERIVATIVE, DRIVEN, PID, Dynamics, Job, Policies
from clearloop.methods.linear_model import find_process_variables, identify
from clearloop.plants.plant import empty_networks, lower_judgements
from clearloop.plants.scenarios import Disturbance, Scenarios
from clearloop.programs import unbounded
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.task.tables import Robust

# Disturbed rollouts.


def disturbances(robust: Robust) -> tuple[Disturbance, ...]:
    """Return the disturbances that a controller must bear, one at a time."""
    found = []
    if robust.late:
        found.append(Disturbance("late", late=robust.late))
    if robust.gain:
        found += [Disturbance("weak", gain=1 - robust.gain), Disturbance("strong", gain=1 + robust.gain)]
    if robust.noise:
        found.append(Disturbance("noisy", noise=robust.noise))
    return tuple(found)


def half_disturbed(scenarios: Scenarios, task: Task, spread: Floats, seed: int) -> Scenarios:
    """Return scenarios of which one of every two neighbours is disturbed, by chance the first or the second.

    A start that is disturbed has noise and the delay; of four, one has less gain and one more.

    Args:
        scenarios: The scenarios of a search.
        task: The task, which says what must be borne.
        spread: [S] the standard deviation of each state in the log.
        seed: The seed of the choice and of the noise.
    """
    robust, rng = task.robust, np.random.default_rng(seed)
    if not disturbances(robust):
        return scenarios
    gains = (1.0, 1 - robust.gain, 1.0, 1 + robust.gain)
    cases = []
    for pair, first in enumerate(rng.integers(2, size=-(-len(scenarios) // 2)).tolist()):
        upset = Disturbance("", robust.noise, robust.late, gains[pair % 4])
        cases += [upset, Disturbance()] if first else [Disturbance(), upset]
    shape = scenarios.steps, scenarios.setpoints.shape[2], len(scenarios)
    drawn = rng.standard_normal(shape) if robust.noise else None
    return scenarios.disturbed(task, cases[: len(scenarios)], spread=spread, drawn=drawn)


# Margins of populations.

_POINTS = 64  # frequencies for a candidate
_RESERVE = 1.1  # what a search asks for, relative to what is asked: the models that judge differ
_SMALL = 1e-5  # differences, in typical sizes
_LONG = 0.3  # differences on a model, whose kinks they average out
_KINK = 0.01  # share of the steepest slope by which slopes to two sides may differ
_SETTLING = 20  # steps in which a law that reads its own past settles
WEIGHT = 0.5  # what all of a margin that lacks costs, as a share of the penalty


@dataclass(frozen=True, eq=False)
class Demands:
    """The margins that the candidates of a search must keep at the usual operating point of its models."""

    task: Task
    point: Floats
    """[S + A] the operating point"""
    aims: Floats
    """[S] the setpoints there"""
    sizes: Floats
    """[S + A] typical sizes"""
    moves: Floats
    """[S, H, S + A] slopes of the mean of the models there"""
    responses: dict[bytes, Response] = field(default_factory=dict)
    """its responses, by the states that belong to the loop: a sum that a law does not read does not"""

    @classmethod
    def of(cls, task: Task, batch: Batch, surrogate: Surrogate) -> "Demands | None":
        """Linearise the models of the search; None if the task asks for no margin.

        Args:
            task: The task.
            batch: The log, which tells the usual operating point.
            surrogate: The models.
        """
        if not task.robust.asks_for_margins:
            return None
        point, aims = operating_point(task, batch)
        half = np.ptp(task.action_limits, axis=1) / 2
        sizes = np.append(batch.states.std(axis=0), half)
        sizes = np.where(sizes > 0, sizes, 1.0)
        moves = plant_slopes(task, surrogate, surrogate.search_members, point, aims, sizes)
        return cls(task, point, aims, sizes, moves)

    def shortfalls(self, policies: Policies, history: int) -> Floats:
        """Return what each of P controllers lacks [P]: 0 if it has all margins, 1 for each that it lacks.

        A law that bends at the operating point lacks one more, because nobody can tell its margins.

        Args:
            policies: The controllers.
            history: The rows of the window that they are encoded for.
        """
        taps, smooth = self._taps(policies, history)
        lacking = np.zeros(len(taps))
        sums = np.isin(self.task.state_names, self.task.scope.derived)
        for read in np.unique(reads := taps.any(axis=(1, 2)) & sums, axis=0):
            same = (reads == read).all(axis=1)
            kept = needed(self.task, self.moves, read)
            lacking[same] = self._lacking(taps[same][..., kept], kept)
        return np.where(np.isfinite(taps).all(axis=(1, 2, 3)), lacking + ~smooth, _ALL)

    def _lacking(self, taps: Floats, kept: Flags) -> Floats:
        """Return what laws of impulse responses [P, A, T, kept states] lack."""
        response = self._response(kept)
        lags = response.z[:, None] ** -np.arange(taps.shape[2])
        seen = np.einsum("pahs,fh->pfas", taps, lags, optimize=True)
        if taps.shape[2] > 1:  # what follows the last step, as a geometric series
            last, before = taps[:, :, -1], taps[:, :, -2]
            share = np.divide(last, before, out=np.zeros_like(last), where=np.abs(before) > 0)
            share = np.clip(share, -0.999, 1.0)[:, None]
            rest = share * last[:, None] / (1 - share * lags[:, 1, None, None])
            seen = seen + rest * lags[:, -1, None, None] * lags[:, 1, None, None]
        with np.errstate(all="ignore"):
            return shortfall(find_loop_margins(response, seen), self.task.robust, _RESERVE)

    def _response(self, kept: Flags) -> Response:
        key = kept.tobytes()
        if key not in self.responses:
            columns = np.append(kept, np.ones(self.moves.shape[2] - len(kept), np.bool_))
            moves = self.moves[kept][:, :, columns]
            self.responses[key] = respond(moves, frequencies(_POINTS, self.task.horizon))
        return self.responses[key]

    def _taps(self, policies: Policies, history: int) -> tuple[Floats, Flags]:
        """Return the impulse responses [P, A, T, S] of laws, and which laws do not bend there [P]."""
        task, s = self.task, len(self.task.states)
        # A law that remembers is pushed in its second step: the first has no past to take differences to.
        lead = int(history > 1 or policies.kind == PID)
        steps = lead + (1 if history == 1 else history + _SETTLING)
        if policies.kind == PID:
            steps = task.horizon + 4
        each = np.diag(self.sizes[:s])
        pushes = np.concatenate([np.zeros((1, s)), each, -each]) * _SMALL
        starts = np.tile(self.point, (len(pushes), history))
        starts[:, :s] += (1 - lead) * pushes
        script = np.tile(self.point[:s], (len(pushes), steps + 1, 1))
        script[:, lead] += pushes
        aims = np.tile(self.aims, (steps, 1))
        job = Job(starts, aims, task.discount, history, script)
        rollout = roll_out(unlimited(policies), scripted(task, history), job, trajectories=True)
        actions = np.asarray(rollout.actions)[0]  # [P, K, T, A]
        base, up, down = actions[:, :1], actions[:, 1 : s + 1], actions[:, s + 1 :]
        slopes = (up - down) / 2
        bends = np.abs((up - base) - (base - down)).max(axis=(1, 2, 3))
        smooth = bends <= _KINK * np.abs(slopes).max(axis=(1, 2, 3)) + 1e-9 * np.abs(base).max(axis=(1, 2, 3))
        taps = slopes / (_SMALL * self.sizes[:s, None, None])
        return np.moveaxis(taps, (1, 2, 3), (3, 2, 1)), smooth


def operating_point(task: Task, batch: Batch) -> tuple[Floats, Floats]:
    """Return the usual states and actions [S + A] at rest, and the usual setpoints [S]."""
    if task.symmetric and not any(task.setpoints.values()):
        return np.zeros(len(task.scope.names)), np.zeros(len(task.states))
    usual = task.setpoints | usual_setpoints(task, batch.setpoints)
    aims = np.array([float(usual.get(name, 0.0)) for name in task.state_names])
    try:
        model = identify(task, batch)
        states, actions = model.rest(np.isin(task.state_names, find_process_variables(task, batch)), aims)
    except ClearloopError:  # the log does not tell a linear model: where it was usually
        states, actions = np.median(batch.states, axis=0), np.nanmedian(batch.actions, axis=0)
    return np.append(states, actions), aims


def plant_slopes(
    task: Task, surrogate: Surrogate, members: Sequence[int], point: Floats, aims: Floats, sizes: Floats
) -> Floats:
    """Return the slopes [S, H, S + A] of the mean of some models at a point.

    Args:
        task: The task.
        surrogate: The models.
        members: The models that are meant.
        point: [S + A] where.
        aims: [S] the setpoints there.
        sizes: [S + A] typical sizes of states and actions.
    """
    stepper = Stepper(task, aims[None], surrogate, members, bare=True)

    def move(windows: Floats) -> Floats:
        return np.asarray(np.mean([stepper(windows, m).states for m in range(stepper.members)], axis=0))

    return find_slopes(move, np.tile(point, (stepper.history, 1)), _LONG * sizes).values


def scripted(task: Task, history: int) -> System:
    """Return a system whose states all follow a script, so that a law can be watched on its own."""
    nothing, s = np.zeros(0), len(task.states)
    dynamics = Dynamics(
        kind=DERIVATIVE,
        ways=np.full(s, DRIVEN),
        order=np.zeros(0, np.int64),
        networks=empty_networks(np.float64),
        code=np.zeros(0, np.int32),
        operand=nothing,
        spans=np.zeros(s + 1, np.int64),
        substeps=1,
        dt=task.dt,
        bounds=unbounded(s),
        absorbing=False,
        on_failure=np.full(s, np.nan),
    )
    return System(dynamics, lower_judgements([parse("0")], task, np.float64, history), members=1)


_ALL = 4.0  # the shortfall of an unstable loop: it has none of the four margins


def shortfall(found: LoopMargins, robust: Robust, reserve: float = 1.0) -> Floats:
    """Return how much of the margins that are asked for P loops lack [P]: 0 for none, 1 for all of each.

    Args:
        found: The margins of the loops.
        robust: What is asked for.
        reserve: What is asked for, relative to that.
    """
    lacking = np.zeros(len(found.stable))
    for margin, least in ((found.phase, robust.phase), (found.delay, robust.delay)):
        if least:
            lacking += np.clip(1 - margin / (reserve * least), 0, 1)
    if robust.gain_margin > 1:
        lacking += np.clip(1 - (found.gain - 1) / (reserve * (robust.gain_margin - 1)), 0, 1)
    if robust.ms > 1:  # as the gain margin that it guarantees, Ms / (Ms - 1)
        with np.errstate(divide="ignore"):
            lacking += np.clip(1 - (robust.ms - 1) / (reserve * np.maximum(found.ms - 1, 0)), 0, 1)
    return np.where(found.stable, lacking, _ALL)


# Margins of one controller.

_FINE = 2_000  # frequencies


@dataclass(frozen=True)
class Kept:
    """The margins that a controller keeps on every model that judges; None where nothing can be said."""

    phase: float | None = None
    """least phase margin in degrees; infinite where no change destabilises"""
    gain: float | None = None
    """least gain margin upwards"""
    delay: float | None = None
    """least delay margin in steps"""
    ms: float | None = None
    """largest sensitivity"""
    robust: bool | None = None
    """whether the controller keeps the margins that the task asks for"""
    why: str = ""
    """why it is not robust, or why nothing can be said"""


def keeps(controller: Controller, task: Task, batch: Batch, surrogate: Surrogate) -> Kept:
    """Find the margins of a controller: the least on the models that judge, each at its own steady state.

    Args:
        controller: The controller.
        task: The task, which says which margins are asked for.
        batch: The log, which tells typical sizes and the usual setpoints.
        surrogate: The models.
    """
    if controller.plans:
        return Kept(why="a planner cannot be linearised")
    usual = usual_setpoints(task, batch.setpoints)
    controller = controller.for_task(task)
    controller = controller.model_copy(update={"setpoint": usual | controller.setpoint})
    spread, found = batch.states.std(axis=0), []
    for member in surrogate.judge_members:
        linear = linearise(controller, task, spread=spread, surrogate=surrogate, members=[member])
        if linear is None:
            return Kept(why="it remembers too many values to be linearised")
        if not linear.at_rest:
            return Kept(why=f"it does not come to rest near its setpoint on model {member + 1}")
        if not linear.smooth:
            return Kept(why="it switches at its steady state, so that it cannot be linearised there")
        found.append(_margins(*essential(task, linear.moves, linear.law), task.horizon))
        if not found[-1].stable[0]:
            why = f"its loop is unstable at its steady state on model {member + 1}"
            return Kept(0.0, 1.0, 0.0, math.inf, robust=False, why=why)
    asked = task.robust
    phase, gain, delay = (
        float(min(getattr(one, name)[0] for one in found)) for name in ("phase", "gain", "delay")
    )
    ms = float(max(one.ms[0] for one in found))
    lacking = [
        said
        for said, lacks in (
            (f"phase margin {phase:.3g} degrees", phase < asked.phase),
            (f"gain margin {gain:.3g}", gain < asked.gain_margin),
            (f"delay margin {delay:.3g} steps", delay < asked.delay),
            (f"Ms {ms:.3g}", bool(asked.ms) and ms > asked.ms),
        )
        if lacks
    ]
    return Kept(phase, gain, delay, ms, robust=not lacking, why=", ".join(lacking))


def _margins(moves: Floats, law: Floats, horizon: int) -> LoopMargins:
    """Return the margins of one loop; a delay of whole steps that destabilises limits the delay margin."""
    s, response = len(moves), respond(moves, frequencies(_FINE, horizon))
    taps = sum_lags(lengthened(law, law.shape[1]), response.z)[None]
    seen, own = taps[..., :s], taps[..., s:]
    found = find_loop_margins(response, seen, own)
    for action in range(len(law)):
        for steps in range(1, MOST_STEPS + 1):
            if steps > found.delay[0]:
                break
            if not bears(response, seen, own, action, steps):
                found = found._replace(delay=np.array([steps - 1.0]))
    return found
