"""The result of a method as plain data, so that a run that goes on need not find it again."""

from typing import Any

from clearloop.controllers import from_json, to_json
from clearloop.evaluation import Evaluation
from clearloop.methods import Point, Result, State


def result_to_state(result: Result) -> State:
    return {
        "method": result.method,
        "steps": result.steps,
        "points": [_point_to_state(point) for point in result.points],
        "beside": [_point_to_state(point) for point in result.beside],
    }


def result_from_state(state: State) -> Result:
    points, beside = (tuple(map(_point_from_state, state[name])) for name in ("points", "beside"))
    return Result(state["method"], points, state["steps"], beside)


def _point_to_state(point: Point) -> State:
    return {
        "controller": to_json(point.controller),
        "judged": _evaluation_to_state(point.judged),
        "model": _evaluation_to_state(point.model),
        "system": point.system and _evaluation_to_state(point.system),
    }


def _point_from_state(state: State) -> Point:
    return Point(
        from_json(state["controller"]),
        Evaluation(**state["judged"]),
        Evaluation(**state["model"]),
        state["system"] and Evaluation(**state["system"]),
    )


def _evaluation_to_state(score: Evaluation) -> dict[str, Any]:
    return {"task": score.task, "on": score.on, "penalties": score.penalties, "failed": score.failed}
