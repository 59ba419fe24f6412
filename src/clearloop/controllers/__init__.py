"""Controllers: observation history → action. Each kind prints, encodes and saves itself."""

from clearloop.controllers.controller import Controller, Memory
from clearloop.controllers.equation import Equation
from clearloop.controllers.file import encode, from_json, load, save, to_json
from clearloop.controllers.fuzzy import Fuzzy
from clearloop.controllers.linear import Linear
from clearloop.controllers.network import GreedyQ, NetworkController
from clearloop.controllers.pid import PID
from clearloop.controllers.planner import Planner

__all__ = [
    "PID",
    "Controller",
    "Equation",
    "Fuzzy",
    "GreedyQ",
    "Linear",
    "Memory",
    "NetworkController",
    "Planner",
    "encode",
    "from_json",
    "load",
    "save",
    "to_json",
]
