"""Controllers as function blocks, run by the interpreter."""

import numpy as np

from clearloop.controllers import Controller
from clearloop.exports.spans import DOUBLE, Precision
from clearloop.exports.structured_text import pous, structured_text
from clearloop.verification.st import Block

STATES = ("theta", "theta_dot", "rho", "rho_dot")
EDGES = (0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e12, -1e12, 1e300, -1e300)


def text_of(controller: Controller, precision: Precision = DOUBLE, *options: str) -> str:
    return structured_text(pous(controller, "test", precision, frozenset(options)))


def block_of(controller: Controller, precision: Precision = DOUBLE, *options: str) -> Block:
    return Block(text_of(controller, precision, *options))


def step(block: Block, observation: dict[str, float]) -> dict[str, float]:
    """A block has inputs for what its controller looks at only."""
    return block.step({name: value for name, value in observation.items() if name in block.inputs})


def observation(rng: np.random.Generator) -> dict[str, float]:
    return {name: value(rng) for name in STATES}


def value(rng: np.random.Generator) -> float:
    """Of a usual size, large, or at an edge."""
    return float(rng.choice((rng.uniform(-3, 3), rng.uniform(-1e3, 1e3), rng.choice(EDGES))))


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))
