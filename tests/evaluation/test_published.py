"""The published controllers cost on the plant what they must."""

from pathlib import Path

import pytest

from clearloop.controllers import from_json, load, to_json
from clearloop.evaluation import evaluate
from tests.controllers.kinds import CARTPOLE

PUBLISHED = Path(__file__).parents[2] / "examples" / "published"
MEASURED = {"lqr": (3.116, 0.073), "gprl": (2.903, 0.065), "pid": (2.999, 0.084), "none": (19.93, 0.999)}


@pytest.mark.parametrize("name", MEASURED)
def test_penalty_and_failures_on_the_scoring_set(name: str) -> None:
    result = evaluate(load(PUBLISHED / f"{name}.json"), CARTPOLE)
    penalty, failures = MEASURED[name]
    assert result.penalties.shape == (1, 1024)
    assert result.penalty == pytest.approx(penalty, abs=0.005)
    assert result.failures == pytest.approx(failures, abs=0.005)


def test_the_hardware_equation_has_lags_and_a_division() -> None:
    hardware = load(PUBLISHED / "hardware.json")
    assert hardware.history == 10
    assert from_json(to_json(hardware)) == hardware
    # 25 θ[t] − θ[t−9] / (0.65 + θ̇[t−8]) + ρ[t−7] + ρ̇[t−1]: 4 variables more, 2 constants, + − × 1, ÷ 2
    assert hardware.complexity == 5 + 2 + 5 + 2
    result = evaluate(hardware, CARTPOLE, starts=64)
    assert 0 < result.penalty < 31.75


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_survives_a_round_trip(path: Path) -> None:
    controller = load(path)
    assert from_json(to_json(controller)) == controller
    assert from_json(to_json(controller.for_task(CARTPOLE))).for_task(CARTPOLE) == controller.for_task(
        CARTPOLE
    )
