"""How an action follows from what its formula wants: limits and levels; by hand; not too fast."""

from dataclasses import dataclass

from clearloop.export.routine import Output
from clearloop.export.structured_text.folding import STEP
from clearloop.export.structured_text.writer import Writer
from clearloop.expression import Variable
from clearloop.expression.meanings import READ_LIMIT


class Limited:
    """The value in its limits."""

    def output(self, writer: Writer, output: Output) -> None:
        action = writer.names[output.action]
        if output.limits is None:
            writer.write(f"{action} := {writer.text(output.value)};")
            return
        wanted = writer.text(output.value)
        if not isinstance(output.value, Variable):
            value, wanted = (
                wanted,
                writer.temporary(("wanted", output.action), f"{output.action.name}_wanted"),
            )
            writer.write(f"{wanted} := {value};")
        writer.write(f"{action} := {_limited(writer, output, wanted)};")

    def end(self, writer: Writer) -> None:
        pass


def _limited(writer: Writer, output: Output, value: str) -> str:
    """In its limits; the nearest level, if there are only some."""
    if output.limits is None:
        return value
    low, high = map(writer.number, output.limits)
    text = f"LIMIT({low}, {value}, {high})"
    if not output.parts:
        return text
    return f"CL_LEVEL({text}, {low}, {high}, {writer.number(output.parts)})"


@dataclass(frozen=True, kw_only=True)
class Operated:
    """By hand or automatic, and not faster than allowed. Until it is assigned, an action is the last one."""

    by_hand: dict[Variable, Variable]
    """Of actions: what the hand wants. Empty: there is no hand."""
    steps: dict[Variable, Variable]
    """Of actions: the largest change from one call to the next. Empty: any."""
    transfer: Variable
    """What is left of the difference between hand and controller from one call to the next."""

    def output(self, writer: Writer, output: Output) -> None:
        action = writer.names[output.action]
        chosen = writer.temporary(("chosen", output.action), f"{output.action.name}_chosen")
        writer.write(f"{chosen} := {_limited(writer, output, writer.text(output.value))};")
        if self.by_hand:
            self._by_hand(writer, output, chosen)
        if self.steps:
            self._not_too_fast(writer, output, chosen)
        writer.write(f"{action} := {chosen};")

    def _by_hand(self, writer: Writer, output: Output, chosen: str) -> None:
        """Back from the hand, the action goes on from where it is; then the difference fades."""
        action, hand = writer.names[output.action], writer.names[self.by_hand[output.action]]
        bias = writer.names.give(("bias", output.action), f"{output.action.name}_bias")
        writer.declare("VAR", bias, "what is left of the difference to the hand")
        writer.declare("VAR_INPUT", "manual", "TRUE: by hand", type_="BOOL")
        writer.declare("VAR", "was_manual", type_="BOOL")
        writer.say("By hand; or automatic, and back from the hand it goes on from where the action is.")
        writer.write(
            "IF manual THEN",
            f"{STEP}{chosen} := {_limited(writer, output, hand)};",
            "ELSE",
            f"{STEP}IF was_manual THEN",
            f"{STEP}{STEP}{bias} := {_sum(writer, output, action, chosen, '-')};",
            f"{STEP}ELSE",
            f"{STEP}{STEP}{bias} := {bias} * {writer.names[self.transfer]};",
            f"{STEP}END_IF;",
            f"{STEP}{chosen} := {_limited(writer, output, _sum(writer, output, chosen, bias))};",
            "END_IF;",
        )

    def _not_too_fast(self, writer: Writer, output: Output, chosen: str) -> None:
        action, step = writer.names[output.action], writer.names[self.steps[output.action]]
        writer.declare("VAR", "acted", "FALSE: there is no last action yet", type_="BOOL")
        low, high = (_sum(writer, output, action, step, sign) for sign in "-+")
        writer.say("Not faster than the rate.")
        writer.write(
            f"IF acted AND ({step} > <0>) THEN",
            f"{STEP}{chosen} := LIMIT({low}, {chosen}, {high});",
            "END_IF;",
        )

    def end(self, writer: Writer) -> None:
        if self.by_hand:
            writer.write("was_manual := manual;")
        if self.steps:
            writer.write("acted := TRUE;")


def _sum(writer: Writer, output: Output, left: str, right: str, sign: str = "+") -> str:
    """Of two values of the size of an action."""
    size = writer.environment.printer.piece(output.value).span.size
    if output.limits:
        size = max(map(abs, output.limits))
    if 8 * (size + READ_LIMIT * READ_LIMIT) < writer.precision.largest:
        return f"{left} {sign} {right}"
    return f"CL_ADD({left}, {right})" if sign == "+" else f"CL_ADD({left}, -{right})"
