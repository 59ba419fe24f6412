"""The words of a text, one after the other, with one word of foresight."""

from typing import NoReturn

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.scanning import Token, scan


class Words:
    def __init__(self, text: str) -> None:
        self._tokens = scan(text)
        self.token = next(self._tokens)

    def advance(self) -> Token:
        """The present word; the next one becomes the present one."""
        token = self.token
        self.token = next(self._tokens, token)
        return token

    def accept(self, text: str) -> bool:
        """Whether the present word is this one; then it is passed over."""
        if self.token.text == text:
            self.advance()
            return True
        return False

    def expect(self, text: str) -> Token:
        if self.token.text != text:
            self.refuse(f"'{text}'")
        return self.advance()

    def expect_name(self) -> Token:
        if self.token.kind != "name":
            self.refuse("a name")
        return self.advance()

    def refuse(self, wanted: str) -> NoReturn:
        raise StructuredTextError(f"expected {wanted}, found {self.token}", self.token.line)
