"""The result of a method as plain data, so that a run that goes on need not find it again."""

from typing import Any

from clearloop.controllers import from_json, to_json
from clearloop.evaluation import Evaluation
from clearloop.methods import Point, Result, State


def result_to_state(result: Result) -> State:
    points = [
        {
            "controller": to_json(point.controller),
            "judged": _evaluation_to_state(point.judged),
            "model": _evaluation_to_state(point.model),
            "system": point.system and _evaluation_to_state(point.system),
        }
        for point in result.points
    ]
    return {"method": result.method, "steps": result.steps, "points": points}


def result_from_state(state: State) -> Result:
    points = [
        Point(
            from_json(point["controller"]),
            Evaluation(**point["judged"]),
            Evaluation(**point["model"]),
            point["system"] and Evaluation(**point["system"]),
        )
        for point in state["points"]
    ]
    return Result(state["method"], tuple(points), state["steps"])


def _evaluation_to_state(score: Evaluation) -> dict[str, Any]:
    return {"task": score.task, "on": score.on, "penalties": score.penalties, "failed": score.failed}
