"""Identifiers that a target accepts, made from names that people chose: ASCII, no keywords, no clashes."""

import re
import unicodedata
from collections.abc import Collection, Hashable

DOT_ABOVE = "\u0307"
LONGEST = 31  # characters that every C99 compiler tells external names apart by


def ascii_name(text: str) -> str:
    """θ̇ as theta_dot, é as e, other letters by their code; `_` is never doubled, first or last."""
    word = "".join(_spelled(character) for character in unicodedata.normalize("NFKD", text))
    word = re.sub("_+", "_", re.sub(r"[^A-Za-z0-9]", "_", word)).rstrip("_")
    return word if re.match("[A-Za-z]", word) else f"x{word}" if word.startswith("_") else f"x_{word}"


def _spelled(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return "_dot" if character == DOT_ABOVE else ""
    script, _, letter = unicodedata.name(character, "").partition(" LETTER ")
    if script.startswith("GREEK") and letter.isalpha():
        return letter.capitalize() if "CAPITAL" in script else letter.lower()
    return f"u{ord(character):04x}"


class Names:
    """Gives each thing its identifier, once."""

    def __init__(self, reserved: Collection[str], *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._taken = {self._key(word) for word in reserved}
        self._given: dict[Hashable, str] = {}

    def _key(self, word: str) -> str:
        return word.lower() if self._ignore_case else word

    def give(self, thing: Hashable, wish: str) -> str:
        """The identifier of a thing: the wish, made legal and with a number if it is taken."""
        if thing not in self._given:
            word = base = ascii_name(wish)[:LONGEST].rstrip("_")
            number = 2
            while self._key(word) in self._taken:
                end = f"_{number}"
                word, number = base[: LONGEST - len(end)].rstrip("_") + end, number + 1
            self._taken.add(self._key(word))
            self._given[thing] = word
        return self._given[thing]

    def __getitem__(self, thing: Hashable) -> str:
        return self._given[thing]
