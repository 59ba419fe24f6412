"""A controller as Structured Text."""

from clearloop.controllers import Controller
from clearloop.export.about import about
from clearloop.export.lowering import lower
from clearloop.export.precision import Precision
from clearloop.export.structured_text.functions import TEMPLATES
from clearloop.export.structured_text.options import varied
from clearloop.export.structured_text.outputs import Limited
from clearloop.export.structured_text.pou import Declaration, Pou, to_text
from clearloop.export.structured_text.splitting import split
from clearloop.export.structured_text.words import DIALECT, finished, real
from clearloop.export.structured_text.writer import Writer


def pous(
    controller: Controller, name: str, precision: Precision, options: frozenset[str] = frozenset()
) -> list[Pou]:
    """The function block, after the functions that it calls. `options`: see `options.py`."""
    routine, words = lower(controller), about(controller, name)
    if options:
        made = varied(controller, routine, options)
        writer = Writer(split(made.routine), name, precision, made.conduct, made.notes, made.kept)
        words[-1:-1] = [f"With {', '.join(sorted(options))}."]
    else:
        writer = Writer(split(routine), name, precision, Limited(), {}, {})
    block = writer.block(words)
    return [*functions(block.body, precision), block]


def structured_text(units: list[Pou]) -> str:
    return "\n".join(to_text(unit) for unit in units)


def functions(body: str, precision: Precision) -> list[Pou]:
    """Those that a text calls, and those that they call."""
    return [_function(name, precision) for name in DIALECT.helpers_in(body)]


def _function(name: str, precision: Precision) -> Pou:
    template = TEMPLATES[name]
    declarations = [Declaration("VAR_INPUT", one, real(precision)) for one in template.inputs]
    declarations += [Declaration("VAR", one, real(precision)) for one in template.locals]
    return Pou(
        name=name,
        result=real(precision),
        words=(template.words,),
        declarations=tuple(declarations),
        body=finished(template.body, precision),
    )
