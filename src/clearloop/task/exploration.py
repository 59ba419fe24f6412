"""How a batch is drawn from the plant, where a law chooses the actions."""

from collections.abc import Iterator, Mapping, Sequence

from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Expression, parse, variables
from clearloop.task.faults import Fault
from clearloop.task.scope import MOST_STEPS_BACK


def law_faults(law: Mapping[str, str], states: Sequence[str], actions: Sequence[str]) -> Iterator[Fault]:
    """`states`: of the plant."""
    if not law:
        return
    for name in (name for name in law if name not in actions):
        yield Fault(("exploration", "law"), f"unknown action {quoted(name)}{did_you_mean(name, actions)}")
    for name in actions:
        if name not in law:
            yield Fault(("exploration", "law"), f"missing action '{name}'")
            continue
        try:
            read_law(law[name], states, actions)
        except ClearloopError as error:
            yield Fault(("exploration", "law", name), str(error))


def read_law(text: str, states: Sequence[str], actions: Sequence[str]) -> Expression:
    formula = parse(text, (*states, *actions))
    for variable in variables(formula):
        if variable.name in actions and not variable.lag:
            raise ClearloopError(f"'{variable}' is being chosen; it can be read from [t-1] on")
        if (variable.lag or 0) > MOST_STEPS_BACK:
            raise ClearloopError(f"'{variable}' looks back too far: at most {MOST_STEPS_BACK:,} steps")
    return formula
