"""What is wrong with a text, and in which of its lines."""

from clearloop.errors import ClearloopError


class StructuredTextError(ClearloopError):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
