"""clearloop turns the log of a plant into controllers that a person can read, check and sign.

`import clearloop as cl` is instant: each public name imports its part of the package when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clearloop.controllers import Controller, load, save
    from clearloop.data import Batch, check
    from clearloop.errors import ClearloopError
    from clearloop.evaluation import evaluate, fitted_q, simulate
    from clearloop.explanation import explain
    from clearloop.exports import export
    from clearloop.methods import learn
    from clearloop.methods.cloning import Cloning
    from clearloop.methods.fgprl import FGPRL
    from clearloop.methods.fpsrl import FPSRL
    from clearloop.methods.gprl import GPRL
    from clearloop.methods.lqr import LQR
    from clearloop.methods.nfq import NFQ
    from clearloop.methods.pid import PID
    from clearloop.methods.psonn import PSONN
    from clearloop.methods.psop import PSOP
    from clearloop.methods.tuning import tune
    from clearloop.pages.run import Run
    from clearloop.plants.exploration import make_batch
    from clearloop.surrogate import Surrogate
    from clearloop.task import Task
    from clearloop.verification import verify

__version__ = "0.1.0"

# The module that each public name is imported from.
_HOMES = {
    "Batch": "clearloop.data",
    "ClearloopError": "clearloop.errors",
    "Cloning": "clearloop.methods.cloning",
    "Controller": "clearloop.controllers",
    "FGPRL": "clearloop.methods.fgprl",
    "FPSRL": "clearloop.methods.fpsrl",
    "GPRL": "clearloop.methods.gprl",
    "LQR": "clearloop.methods.lqr",
    "NFQ": "clearloop.methods.nfq",
    "PID": "clearloop.methods.pid",
    "PSONN": "clearloop.methods.psonn",
    "PSOP": "clearloop.methods.psop",
    "Run": "clearloop.pages.run",
    "Surrogate": "clearloop.surrogate",
    "Task": "clearloop.task",
    "check": "clearloop.data",
    "evaluate": "clearloop.evaluation",
    "explain": "clearloop.explanation",
    "export": "clearloop.exports",
    "fitted_q": "clearloop.evaluation",
    "learn": "clearloop.methods",
    "load": "clearloop.controllers",
    "make_batch": "clearloop.plants.exploration",
    "save": "clearloop.controllers",
    "simulate": "clearloop.evaluation",
    "tune": "clearloop.methods.tuning",
    "verify": "clearloop.verification",
}

__all__ = [
    "FGPRL",
    "FPSRL",
    "GPRL",
    "LQR",
    "NFQ",
    "PID",
    "PSONN",
    "PSOP",
    "Batch",
    "ClearloopError",
    "Cloning",
    "Controller",
    "Run",
    "Surrogate",
    "Task",
    "check",
    "evaluate",
    "explain",
    "export",
    "fitted_q",
    "learn",
    "load",
    "make_batch",
    "save",
    "simulate",
    "tune",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clearloop' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
