"""Controllers map the history of observations to actions; a kind defines how it acts and is exported."""

from clearloop.controllers.controller import Controller
from clearloop.controllers.encoding import encode
from clearloop.controllers.equation import Equation, FormulaController
from clearloop.controllers.file import from_json, load, save, to_json
from clearloop.controllers.fuzzy import Fuzzy
from clearloop.controllers.linear import Linear
from clearloop.controllers.memory import Memory
from clearloop.controllers.network import GreedyQ, NetworkController
from clearloop.controllers.pid import PID
from clearloop.controllers.planner import Planner

__all__ = [
    "PID",
    "Controller",
    "Equation",
    "FormulaController",
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
