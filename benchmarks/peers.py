"""The same rollout in NumPy, JAX and PyTorch as one would write it there: all lanes at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.job import DISCOUNT, LEVELS, LIMIT, Floats, Layers, Workload

Runner = Callable[[], Floats]
"""runs the workload and gives the return of every lane, [policies · starts]"""


def _lanes(workload: Workload) -> tuple[Floats, Floats]:
    """Start states and gains [S, lanes], controller by controller."""
    policies, starts = len(workload.gains), len(workload.starts)
    states = np.tile(workload.starts.T, policies)
    return np.ascontiguousarray(states), np.ascontiguousarray(np.repeat(workload.gains.T, starts, axis=1))


def numpy_runner(workload: Workload) -> Runner:
    def forward(layers: Layers, x: Floats) -> Floats:
        for weights, biases in layers[:-1]:
            x = weights @ x
            x += biases[:, None]
            np.maximum(x, 0, out=x)
        weights, biases = layers[-1]
        return np.asarray(weights @ x + biases[:, None], np.float32)

    def run() -> Floats:
        states, gains = _lanes(workload)
        total, gain = np.zeros(states.shape[1], np.float32), np.float32(1)
        for _ in range(workload.horizon):
            action = np.clip(np.einsum("sl,sl->l", gains, states), -LIMIT, LIMIT)
            inputs = np.concatenate([states, action[None]])
            states = states + np.concatenate([forward(layers, inputs) for layers in workload.dynamics[0]])
            total += gain * LEVELS[np.argmax(forward(workload.reward[0], states), axis=0)]
            gain *= np.float32(DISCOUNT)
        return total

    return run


def jax_runner(workload: Workload) -> Runner:
    import jax
    import jax.numpy as jnp

    # The four networks side by side: one [S, out, in] product for each layer.
    stacked = [
        (jnp.stack([w for w, _ in layer]), jnp.stack([b for _, b in layer]))
        for layer in zip(*workload.dynamics[0], strict=True)
    ]
    reward = [(jnp.asarray(w), jnp.asarray(b)) for w, b in workload.reward[0]]
    levels = jnp.asarray(LEVELS)

    def relu_layers(layers: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
        for weights, biases in layers[:-1]:
            x = jax.nn.relu(weights @ x + biases[..., None])
        weights, biases = layers[-1]
        return weights @ x + biases[..., None]

    @jax.jit
    def roll(states: jax.Array, gains: jax.Array) -> jax.Array:
        def step(carry: Any, _: None) -> tuple[Any, None]:
            states, total, gain = carry
            action = jnp.clip(jnp.sum(gains * states, axis=0), -LIMIT, LIMIT)
            inputs = jnp.concatenate([states, action[None]])
            states = states + relu_layers(stacked, inputs)[:, 0]
            total = total + gain * levels[jnp.argmax(relu_layers(reward, states), axis=0)]
            return (states, total, gain * DISCOUNT), None

        first = (states, jnp.zeros(states.shape[1]), jnp.float32(1))
        return jax.lax.scan(step, first, None, length=workload.horizon)[0][1]

    states, gains = map(jnp.asarray, _lanes(workload))
    return lambda: np.asarray(roll(states, gains))


def torch_runner(workload: Workload) -> Runner:
    """Rows are lanes, as `torch.nn.Linear` has them."""
    import torch

    def network(layers: Layers) -> torch.nn.Sequential:
        modules: list[torch.nn.Module] = []
        for weights, biases in layers:
            linear = torch.nn.Linear(weights.shape[1], weights.shape[0])
            linear.weight.data, linear.bias.data = torch.from_numpy(weights), torch.from_numpy(biases)
            modules += [linear, torch.nn.ReLU()]
        return torch.nn.Sequential(*modules[:-1])

    dynamics = [network(layers) for layers in workload.dynamics[0]]
    reward, levels = network(workload.reward[0]), torch.from_numpy(LEVELS)
    first, gains = (torch.from_numpy(array.T.copy()) for array in _lanes(workload))

    def run() -> Floats:
        with torch.inference_mode():
            states, total, gain = first, torch.zeros(len(first)), 1.0
            for _ in range(workload.horizon):
                action = (gains * states).sum(1, keepdim=True).clamp(-LIMIT, LIMIT)
                inputs = torch.cat([states, action], 1)
                states = states + torch.cat([change(inputs) for change in dynamics], 1)
                total = total + gain * levels[reward(states).argmax(1)]
                gain *= DISCOUNT
            return np.asarray(total.numpy())

    return run
