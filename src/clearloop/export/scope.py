"""The names that a routine needs: what a controller reads, and what must be remembered for it."""

from clearloop.controllers import Controller
from clearloop.export.routine import Input, Let, Ring, Statement, Store
from clearloop.export.terms import call, limited
from clearloop.expression import Expression, Number, Variable
from clearloop.expression.meanings import READ_LIMIT


class Scope:
    """Collects statements, inputs and rings while a controller is lowered."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.body: list[Statement] = []
        self._taken = {variable.name for _, variable in controller.variables()}
        self._taken |= {*controller.actions, *controller.derived, *controller.setpoint, *controller.follows}
        self._inputs: dict[Variable, Input] = {}
        self._depths: dict[str, int] = {}
        self._errors: dict[tuple[str, int, bool], Variable] = {}

    def fresh(self, name: str) -> Variable:
        """A name that stands for nothing else."""
        unique, number = name, 2
        while unique in self._taken:
            unique, number = f"{name}_{number}", number + 1
        self._taken.add(unique)
        return Variable(unique)

    def let(self, name: str, value: Expression) -> Variable:
        """A value with a name of its own."""
        target = self.fresh(name)
        self.body.append(Let(target, value))
        return target

    def value(self, name: str, lag: int | None) -> Variable:
        """Of a state now or some steps ago, or of an action some steps ago, as formulas read it."""
        if name not in {*self.controller.actions, *self.controller.derived}:
            self._input(Variable(name))
        if not lag:
            return Variable(name)
        self._depths[name] = max(lag, self._depths.get(name, 0))
        return Variable(name, lag=lag)

    def aim(self, name: str) -> Expression:
        """The setpoint; 0 where there is none."""
        if name not in self.controller.setpoint and name not in self.controller.follows:
            return Number(0.0)
        self._input(Variable(name, "setpoint"), self.controller.setpoint.get(name))
        return Variable(name, "setpoint")

    def error(self, name: str, lag: int | None, *, limit: bool) -> Expression:
        """Value − setpoint, with a name of its own. `limit`: read like a variable of a formula."""
        value, aim = self.value(name, lag), self.aim(name)
        if isinstance(aim, Number):
            return value
        key = name, lag or 0, limit
        if key not in self._errors:
            tree = call("sub", value, aim)
            name_of_it = f"{name}_error{f'_{lag}' if lag else ''}"
            self._errors[key] = self.let(name_of_it, limited(tree) if limit else tree)
        return self._errors[key]

    def _input(self, variable: Variable, default: float | None = None) -> None:
        unit = self.controller.units.get(variable.name, "")
        self._inputs.setdefault(variable, Input(variable=variable, unit=unit, default=default))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """States, then setpoints."""
        return tuple(sorted(self._inputs.values(), key=lambda one: one.variable.part == "setpoint"))

    def rings(self, names: set[str]) -> list[Ring]:
        """Of those of these states or actions whose past is read."""
        return [self._ring(name, depth) for name, depth in self._depths.items() if name in names]

    def _ring(self, name: str, depth: int) -> Ring:
        if name not in self.controller.actions:
            return Ring(name=Variable(name), holds=Variable(name), depth=depth, repeat=True)
        limits = self.controller.limits.get(name, (-float("inf"), float("inf")))
        small = limits[0] >= -READ_LIMIT and limits[1] <= READ_LIMIT
        holds = Variable(name) if small else limited(Variable(name))
        return Ring(name=Variable(name), holds=holds, depth=depth, repeat=False)

    @property
    def past(self) -> set[str]:
        """The states and actions whose past is read."""
        return set(self._depths)


def stores(rings: list[Ring]) -> list[Statement]:
    return [Store(ring) for ring in rings]
