"""The one error of the formula language: what is wrong, at which column, and what to write instead."""

from clearloop.errors import ClearloopError


class FormulaError(ClearloopError):
    """A formula that is none. `column` counts characters from 1; it is None where there is no text."""

    def __init__(self, problem: str, column: int | None = None, advice: str = "") -> None:
        place = "" if column is None else f" at column {column}"
        super().__init__(f"{problem}{place}{advice and '; '}{advice}")
        self.column = column
