"""Controllers with extreme numbers and odd words, as the other tests draw them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearloop.controllers import from_json
from clearloop.errors import ClearloopError
from clearloop.exports import export
from clearloop.registry import TARGETS
from clearloop.verification import Amount
from tests.controllers.strategies import BODIES, tables
from tests.exports.batch import STRICT, make_case, run_python

FEW = Amount(episodes=1, length=3, after=1, tries=0, share=0.02)


@pytest.mark.parametrize("kind", BODIES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_they_are_the_same_function_and_finite(kind: str, data: st.DataObject) -> None:
    controller = from_json(json.dumps(data.draw(tables(kind))))
    case = make_case(controller, np.random.default_rng(0), FEW)
    (found,) = run_python([case])
    assert np.isfinite(found).all()
    assert case.expectation.difference(found) <= case.expectation.tolerance


@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(table=st.sampled_from(list(BODIES)).flatmap(tables))
def test_their_c_compiles_with_no_warning(table: dict[str, Any], tmp_path: Path) -> None:
    for name, text in export(from_json(json.dumps(table)), to="c").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = ["gcc", *STRICT, "-c", "controller.c", "-o", "x.o"]
    subprocess.run(command, cwd=tmp_path, check=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(table=st.sampled_from(list(BODIES)).flatmap(tables))
def test_every_language_takes_them_or_says_why_not(table: dict[str, Any]) -> None:
    controller = from_json(json.dumps(table))
    for to, target in TARGETS.items():
        if target.built:
            continue  # it holds the C, and takes a compiler each time
        if target.networks or controller.readable:
            assert all(text.endswith("\n") for text in export(controller, to=to).values())
        else:
            with pytest.raises(ClearloopError, match="cannot be exported"):
                export(controller, to=to)
