"""The plain twin of the engine: cart and pole written out by hand in NumPy, and a controller's own `act`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.kernels.layout import CALM, Disturbances

STATES = ("theta", "theta_dot", "rho", "rho_dot")
GRAVITY, TOTAL_MASS, POLE_MASS, HALF_LENGTH = 9.81, 1.1, 0.1, 0.5
INTERVAL, SUBSTEPS = 0.025, 10
DISCOUNT = 0.97


class Course(NamedTuple):
    """N starts, T steps."""

    states: Floats
    """[N, T + 1, 4]"""
    actions: Floats
    """[N, T]"""
    rewards: Floats
    """[N, T]"""
    failed: NDArray[np.bool_]
    """[N]"""

    @property
    def penalties(self) -> Floats:
        """[N]"""
        return -self.rewards @ DISCOUNT ** np.arange(self.rewards.shape[1])


def slopes(state: Floats, force: Floats) -> Floats:
    theta, theta_dot, _, rho_dot = state.T
    sine, cosine = np.sin(theta), np.cos(theta)
    h = force + POLE_MASS * HALF_LENGTH * theta_dot**2 * sine
    inertia = 4 / 3 * TOTAL_MASS * HALF_LENGTH - POLE_MASS * HALF_LENGTH * cosine**2
    theta_ddot = (TOTAL_MASS * GRAVITY * sine - h * cosine) / inertia
    rho_ddot = (h - POLE_MASS * HALF_LENGTH * theta_ddot * cosine) / TOTAL_MASS
    return np.stack([theta_dot, theta_ddot, rho_dot, rho_ddot], axis=1)


def integrate(state: Floats, force: Floats) -> Floats:
    """[N, 4] after a control interval: classical Runge–Kutta."""
    h = INTERVAL / SUBSTEPS
    for _ in range(SUBSTEPS):
        k1 = slopes(state, force)
        k2 = slopes(state + h / 2 * k1, force)
        k3 = slopes(state + h / 2 * k2, force)
        k4 = slopes(state + h * k3, force)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def step(state: Floats, force: Floats, setpoint: float = 0.0) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The next states [N, 4], rewards [N] and failures [N]."""
    after = integrate(state, force)
    theta, rho = after[:, 0], after[:, 2]
    failed = (np.abs(theta) > 0.7) | (np.abs(rho) > 2.4)
    good = (np.abs(theta) < 0.25) & (np.abs(rho - setpoint) < 0.5)
    after[failed, 1] = after[failed, 3] = 0.0
    return after, np.where(failed, -1.0, np.where(good, 0.0, -0.1)), failed


def roll_out(
    controller: Controller,
    starts: Floats,
    setpoints: Sequence[float],
    upset: Disturbances = CALM,
    past: float = 0.0,
) -> Course:
    """`setpoints`: of rho, at each step; `past`: the force before the start.

    What has failed stays, and goes on paying.
    """
    chosen: list[Floats] = []
    memories = [controller.reset() for _ in starts]
    state, failed = starts.copy(), np.zeros(len(starts), np.bool_)
    states, actions, rewards = [state], [], []
    for k, setpoint in enumerate(setpoints):
        seen = state + upset.noise[k].T if len(upset.noise) else state
        force = np.array([
            controller.act(dict(zip(STATES, row.tolist(), strict=True)), memory, {"rho": setpoint})["force"]
            for row, memory in zip(seen, memories, strict=True)
        ])  # fmt: skip
        chosen.append(force)
        if len(upset.late):
            before = k - upset.late
            under_way = [chosen[t][n] if t >= 0 else past for n, t in enumerate(before.tolist())]
            force = np.clip(upset.gain[:, 0] * under_way + upset.offset[:, 0], -10, 10)
        after, reward, fails = step(state, force, setpoint)
        state = np.where(failed[:, None], state, after)
        reward = np.where(failed, -1.0, reward)
        failed = failed | fails
        states.append(state)
        actions.append(force)
        rewards.append(reward)
    return Course(np.stack(states, axis=1), np.stack(actions, axis=1), np.stack(rewards, axis=1), failed)
