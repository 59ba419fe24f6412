"""Plants whose static gains, time constants and margins are known, and logs of them.

A plant is linear: transfer functions with dead time, sampled every `dt` seconds, of which the log shows the
outputs alone. The logs are made under PI control with moving setpoints, or with random moves by hand, with
or without sensor noise.
"""

from dataclasses import dataclass

import control
import numpy as np
from scipy.linalg import block_diag

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.task import Task

SPAN = 10.0  # setpoints move by as much around the offset
OFFSET = 20.0  # outputs at rest, so that absolute coordinates differ from deviations


@dataclass(frozen=True)
class Channel:
    """The transfer function numerator/denominator · exp(-late s) from one action to one output."""

    numerator: tuple[float, ...]
    denominator: tuple[float, ...]
    late: int = 0
    """dead time in whole steps"""


@dataclass(frozen=True)
class Planted:
    """A linear plant with a PI controller for each of its loops (output k by action k)."""

    name: str
    dt: float
    channels: tuple[tuple[Channel, ...], ...]
    """[outputs][actions]"""
    gains: tuple[float, ...]
    """Kp of each loop, of the error setpoint - output"""
    resets: tuple[float, ...]
    """Ti of each loop in seconds"""
    hold: int = 60
    """steps between two moves"""
    limits: tuple[float, float] = (-50.0, 150.0)
    open_loop: bool = True
    """False if the plant cannot be logged without control"""

    @property
    def outputs(self) -> int:
        return len(self.channels)

    def system(self) -> control.StateSpace:
        """The plant in discrete time, with its dead times as states."""
        parts, inputs, outputs = [], [], []
        for k, row in enumerate(self.channels):
            for j, channel in enumerate(row):
                part = control.c2d(control.ss(control.tf(channel.numerator, channel.denominator)), self.dt)
                if late := channel.late:
                    shift = control.ss(
                        np.eye(late, k=-1), np.eye(late, 1), np.eye(1, late, late - 1), 0, self.dt
                    )
                    part = part * shift
                parts.append(part)
                inputs.append(np.asarray(part.B) @ np.eye(len(row))[j : j + 1])
                outputs.append(np.eye(self.outputs)[:, k : k + 1] @ np.asarray(part.C))
        a = block_diag(*(np.asarray(part.A) for part in parts))
        return control.ss(a, np.vstack(inputs), np.hstack(outputs), 0, self.dt)

    def static_gain(self) -> Floats:
        """[outputs, actions]; infinite where the channel integrates"""
        return np.array([[_static(c) for c in row] for row in self.channels])

    def pi(self, loop: int) -> control.TransferFunction:
        kp, ti = self.gains[loop], self.resets[loop]
        return control.tf([kp * (1 + self.dt / ti), -kp], [1.0, -1.0], self.dt)

    def open_loop_of(self, loop: int) -> control.StateSpace:
        """The response of one loop, cut at its action, while the others are closed."""
        plant = self.system()
        others = [k for k in range(self.outputs) if k != loop]
        if not others:
            return control.ss(plant * control.ss(self.pi(0)))
        (other,) = others
        g = [[plant[i, j] for j in range(2)] for i in range(2)]
        inner = control.feedback(control.ss(self.pi(other)), g[other][other])
        through = g[loop][other] * inner * g[other][loop]
        return control.ss((g[loop][loop] - through) * control.ss(self.pi(loop)))

    def margins(self, loop: int = 0) -> tuple[float, float]:
        """Gain margin upwards and phase margin in degrees by python-control."""
        w = np.geomspace(1e-4, 1.0, 6000) * np.pi / self.dt
        response = control.frequency_response(self.open_loop_of(loop), w)
        bode = np.abs(response.frdata[0, 0]), np.degrees(np.unwrap(np.angle(response.frdata[0, 0]))), w
        factors, phases, *_ = control.stability_margins(bode, returnall=True)
        end = response.frdata[0, 0, -1]
        factors = np.append(factors, -1 / end.real if end.real < 0 else np.inf)
        ups = factors[(factors > 1) & np.isfinite(factors)]
        return float(ups.min()) if ups.size else np.inf, float(
            np.abs(phases).min()
        ) if phases.size else np.inf

    def task(self, *, history: int = 2, summed: bool = True) -> Task:
        names = [f"y{k}" for k in range(self.outputs)] if self.outputs > 1 else ["y"]
        states: dict[str, object] = {name: {"unit": "degC", "setpoint": f"{name}_sp"} for name in names}
        if summed:
            states |= {
                f"{n}_sum": {"formula": f"clip({n}_sum[t-1] + dt*{n}.error, -1e6, 1e6)"} for n in names
            }
        actions = [f"u{k}" for k in range(len(self.channels[0]))] if len(self.channels[0]) > 1 else ["u"]
        return Task.from_dict(
            {
                "name": self.name,
                "dt": self.dt,
                "discount": 0.99,
                "horizon": 4 * self.hold,
                "history": history,
                "states": states,
                "actions": {name: {"unit": "%", "limits": list(self.limits)} for name in actions},
                "reward": {
                    "terms": [{"track": name, "scale": 5.0} for name in names]
                    + [{"rate": name, "weight": 0.1} for name in actions]
                },
            }
        )

    def log(
        self,
        task: Task,
        *,
        under: str = "pi",
        noise: float = 0.01,
        process: float = 0.0,
        size: int = 2000,
        seed: int = 0,
    ) -> Batch:
        """A log of one episode; `noise` is the sensor noise, as a share of each output's spread."""
        import polars as pl

        rng = np.random.default_rng(seed)
        clean, _, _ = self._run(rng, under, np.zeros((size, self.outputs)), process)
        seen = rng.normal(0, 1, clean.shape) * noise * clean.std(axis=0)
        rng = np.random.default_rng(seed)
        outputs, actions, aims = self._run(rng, under, seen, process)
        names = [n for n in task.states if not task.states[n].formula]
        frame = pl.DataFrame(
            {n: outputs[:, k] for k, n in enumerate(names)}
            | {f"{n}_sp": aims[:, k] for k, n in enumerate(names)}
            | {n: actions[:, k] for k, n in enumerate(task.actions)}
        )
        return Batch.from_frame(frame, task)

    def _run(
        self, rng: np.random.Generator, under: str, noise: Floats, process: float
    ) -> tuple[Floats, Floats, Floats]:
        system = self.system()
        a, b, c = (np.asarray(part) for part in (system.A, system.B, system.C))
        size, n_out, n_act = len(noise), len(c), b.shape[1]
        x = np.zeros(len(a))
        middle = np.full(n_act, 50.0)
        sums = np.zeros(n_act)
        outputs, actions, aims = np.zeros((size, n_out)), np.zeros((size, n_act)), np.zeros((size, n_out))
        aim, hand = np.full(n_out, OFFSET), middle.copy()
        low, high = self.limits
        disturbance = rng.normal(0, 1, (size, len(a)))
        kp, ti = np.array(self.gains), np.array(self.resets)
        for t in range(size):
            if t % self.hold == 0:
                aim = OFFSET + rng.uniform(-SPAN, SPAN, n_out)
            if under == "hand" and t % max(2, self.hold // 4) == 0:
                hand = middle + rng.uniform(-20, 20, n_act)
            y = c @ x + OFFSET + noise[t]
            outputs[t], aims[t] = y, aim
            if under == "pi":
                error = aim - y
                sums = sums + self.dt * error / ti
                u = np.clip(middle + kp * (error + sums), low, high)
            else:
                u = hand
            actions[t] = u
            x = a @ x + b @ (u - middle) + process * disturbance[t]
        return outputs, actions, aims


def _static(channel: Channel) -> float:
    return channel.numerator[-1] / channel.denominator[-1] if channel.denominator[-1] else np.inf


def one(
    name: str,
    numerator: tuple[float, ...],
    denominator: tuple[float, ...],
    late: int = 0,
    *,
    kp: float,
    ti: float,
    hold: int = 60,
    open_loop: bool = True,
) -> Planted:
    """Return a plant with one output and one action, sampled every second."""
    channel = Channel(numerator, denominator, late)
    return Planted(name, 1.0, ((channel,),), (kp,), (ti,), hold, open_loop=open_loop)


PLANTS = {
    plant.name: plant
    for plant in (
        one(
            "first",
            (1.7,),
            (
                20.0,
                1.0,
            ),
            kp=2.0,
            ti=20.0,
        ),
        one(
            "first_late",
            (1.7,),
            (
                20.0,
                1.0,
            ),
            6,
            kp=0.8,
            ti=20.0,
            hold=100,
        ),
        one(
            "second",
            (2.0,),
            (
                60.0,
                23.0,
                1.0,
            ),
            kp=2.0,
            ti=23.0,
            hold=100,
        ),
        one(
            "second_late",
            (2.0,),
            (
                60.0,
                23.0,
                1.0,
            ),
            8,
            kp=0.6,
            ti=23.0,
            hold=120,
        ),
        one(
            "integrating",
            (0.02,),
            (
                1.0,
                0.0,
            ),
            kp=6.0,
            ti=40.0,
            hold=100,
            open_loop=False,
        ),
        one(
            "integrating_late",
            (0.02,),
            (
                1.0,
                0.0,
            ),
            5,
            kp=3.0,
            ti=90.0,
            hold=150,
            open_loop=False,
        ),
        one(
            "unstable",
            (1.0,),
            (
                20.0,
                -1.0,
            ),
            kp=5.0,
            ti=40.0,
            hold=100,
            open_loop=False,
        ),
        one(
            "oscillating",
            (1.5,),
            (
                36.0,
                3.6,
                1.0,
            ),
            kp=0.15,
            ti=4.0,
            hold=120,
        ),
        one(
            "nonminimum",
            (
                -4.0 * 1.2,
                1.2,
            ),
            (
                100.0,
                20.0,
                1.0,
            ),
            kp=0.8,
            ti=16.0,
            hold=120,
        ),
        one(
            "slow",
            (1.7,),
            (
                400.0,
                1.0,
            ),
            3,
            kp=5.0,
            ti=100.0,
            hold=150,
        ),
        Planted(
            "two",
            1.0,
            (
                (Channel((1.28,), (16.7, 1.0), 1), Channel((-0.6,), (21.0, 1.0), 3)),
                (Channel((0.5,), (10.9, 1.0), 4), Channel((-1.94,), (14.4, 1.0), 2)),
            ),
            (1.5, -0.8),
            (16.0, 14.0),
            hold=100,
        ),
    )
}
