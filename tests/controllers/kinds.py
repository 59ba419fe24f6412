"""A controller of every kind for the cart-pole, each with what makes its kind hard.

A new kind needs an example here: the tests of kernels, exports, pages and diagnosis take it from this table.
"""

import json
from typing import Any

from clearloop.controllers import Controller, from_json
from clearloop.registry import KINDS as REGISTERED
from clearloop.task import Task

CARTPOLE = Task.load("cartpole")

TEXTS = {
    "equation": """{
  "clearloop": 1, "kind": "equation",
  "outputs": {"force": "69.8*theta + 20*theta_dot + 10*rho + 9.4*rho_dot"}
}""",
    "lagging equation": """{
  "clearloop": 1, "kind": "equation", "setpoint": {"rho": 0.3},
  "outputs": {"force": "if(abs(theta) > 0.12, 9 + theta, 66*theta) + 19*theta_dot[t-1] + 9*rho[t-3]\
 + 8*rho_dot - theta[t-9]/(0.65 + theta_dot[t-8]) + 0.1*force[t-1] - 0.05*force[t-2]\
 + rho.setpoint + tanh(exp(rho))*sin(rho)"}
}""",
    "linear": """{
  "clearloop": 1, "kind": "linear", "setpoint": {"rho": -0.4},
  "gains": {"force": {"rho": 2.8, "theta": 38.8, "rho_dot": 3.9, "theta_dot[t-1]": 10.1, "force[t-1]": 0.1}}
}""",
    "pid": """{
  "clearloop": 1, "kind": "pid",
  "outputs": {"force": {"scale": 10.0, "loops": [
    {"input": "theta", "weight": 0.95, "kp": -8.58, "ki": -0.15186, "kd": -121.19, "window": 40},
    {"input": "rho", "weight": 0.05, "kp": -25.62, "ki": -0.1548, "kd": -1060.03, "window": 28},
    {"input": "theta", "kp": 0, "kd": -0.5}]}}
}""",
    "biased pid": """{
  "clearloop": 1, "kind": "pid",
  "outputs": {"force": {"scale": 0.5, "bias": -0.75, "loops": [
    {"input": "theta", "kp": -160, "ki": -2, "kd": -900, "window": 7},
    {"input": "rho", "kp": -20, "kd": -700}]}}
}""",
    "pi as blocks have it": """{
  "clearloop": 1, "kind": "pid", "setpoint": {"rho": 0.2},
  "outputs": {"force": {"bias": 0.3, "rate": 4.5, "feedforward": {"rho.setpoint": -0.7, "theta_dot": 1.5},
   "loops": [
    {"input": "theta", "kp": -55, "ki": -2.5, "kd": -700, "integral": true, "filter": 0.8},
    {"input": "rho", "kp": -6, "ki": -0.3, "kd": -200, "integral": true, "setpoint_weight": 0.4,
     "derivative_of": "measurement", "filter": 1.5},
    {"input": "theta_dot", "kp": -1, "ki": -0.2, "window": 3}]}}
}""",
    "cascade": """{
  "clearloop": 1, "kind": "pid", "setpoint": {"rho": -0.3},
  "outputs": {"force": {"scale": -1.0, "rate": 12.0,
    "outer": {"input": "rho", "kp": -0.05, "ki": -0.0005, "kd": -2.5, "integral": true,
              "limits": [-0.2, 0.2]},
    "inner": {"input": "theta", "kp": 70, "ki": 0.4, "kd": 750, "integral": true, "setpoint_weight": 0.9,
              "derivative_of": "measurement"}}}
}""",
    "scheduled pid": """{
  "clearloop": 1, "kind": "pid",
  "outputs": {"force": {"loops": [
    {"input": "theta", "integral": true, "filter": 0.5, "schedule": {"by": "rho", "at": [-0.5, 0.0, 1.0],
     "kp": [-60, -50, -70], "ki": [-1, -0.5, -2], "kd": [-800, -600, -900]}},
    {"input": "rho", "schedule": {"by": "theta", "at": [-0.1, 0.1], "kp": [-5, -7]}}]}}
}""",
    "fuzzy": """{
  "clearloop": 1, "kind": "fuzzy",
  "outputs": {"force": {"scale": 10.0, "alpha": 3.1, "rules": [
    {"if": {"theta": {"center": 0.4, "width": 0.39}, "theta_dot": {"center": 1, "width": 1.16},
            "rho": {"center": 0.5, "width": 1.16}, "rho_dot": {"center": 0.5, "width": 1.2}}, "then": 0.9},
    {"if": {"theta": {"center": -0.4, "width": 0.39}, "theta_dot": {"center": -1, "width": 1.16},
            "rho[t-1]": {"center": -0.5, "width": 1.16}, "rho_dot": {"center": -0.5, "width": 1.2}},
     "then": -0.9},
    {"if": {"rho_dot": {"center": 5, "width": 0.05}}, "then": 0.1}]}}
}""",
    "network": """{
  "clearloop": 1, "kind": "network",
  "inputs": ["theta", "theta_dot", "rho", "rho_dot", "theta[t-1]"],
  "layers": [
    {"weights": [[3.1, 0.9, 0.4, 0.3, 1.2], [-2.0, -0.8, -0.5, -0.4, 0.1], [1, 2, 3, 4, 5]],
     "bias": [0.1, -0.2, 0.05], "activation": "tanh"},
    {"weights": [[1.5, -1.2, 0.1], [0.3, 0.2, -0.1]], "bias": [0.0, 0.3], "activation": "relu"},
    {"weights": [[2.0, 0.5], [0.1, 0.2]], "bias": [-0.9, 0.1], "activation": "sigmoid"},
    {"weights": [[3.0, 0.1]], "bias": [-1.4]}],
  "outputs": {"force": {"scale": 10.0}}
}""",
    "greedy-q": """{
  "clearloop": 1, "kind": "greedy-q", "setpoint": {"rho": 0.2},
  "inputs": ["theta", "theta_dot", "rho", "rho_dot[t-1]"],
  "layers": [
    {"weights": [[6.1, 1.9, 0.8, 0.7, -0.11], [-6.3, -1.8, -0.9, -0.6, 0.12], [1, 0.2, 0.3, 0.1, 0.02]],
     "bias": [-0.5, -0.55, 0.05], "activation": "relu"},
    {"weights": [[-1.5, -1.2, 0.1], [-0.9, -1.1, 0.03]], "bias": [0.2, 0.3], "activation": "sigmoid"},
    {"weights": [[2.0, 0.5]], "bias": [0.1]}],
  "outputs": {"force": [-10, -3.5, 0, 3.5, 10]}
}""",
}

KINDS: dict[str, Controller] = {name: from_json(text) for name, text in TEXTS.items()}
"""By the name of the example."""

POPULATED = tuple(name for name, kind in REGISTERED.items() if kind.policy is not None)
"""The kinds that the engine runs, by the names in their files."""


def examples(kind: str) -> list[dict[str, Any]]:
    """The tables of a kind's examples."""
    return [table for table in map(json.loads, TEXTS.values()) if table["kind"] == kind]
