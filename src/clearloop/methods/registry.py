"""The methods by name: a new one is a file of its own, and a line here."""

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.methods.cloning import Cloning
from clearloop.methods.fgprl import FGPRL
from clearloop.methods.fpsrl import FPSRL
from clearloop.methods.gprl import GPRL
from clearloop.methods.lqr import LQR
from clearloop.methods.method import Method
from clearloop.methods.nfq import NFQ
from clearloop.methods.pid import PID
from clearloop.methods.psonn import PSONN
from clearloop.methods.psop import PSOP

METHODS: dict[str, type[Method]] = {
    "gprl": GPRL,
    "fgprl": FGPRL,
    "fpsrl": FPSRL,
    "psonn": PSONN,
    "lqr": LQR,
    "pid": PID,
    "nfq": NFQ,
    "cloning": Cloning,
    "pso-p": PSOP,
}


def find_method(name: str) -> type[Method]:
    if name not in METHODS:
        hint = did_you_mean(name, METHODS) or f"; the methods are: {', '.join(METHODS)}"
        raise ClearloopError(f"no method {quoted(name)}{hint}")
    return METHODS[name]
