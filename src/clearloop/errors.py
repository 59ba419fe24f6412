"""What goes wrong through no fault of the program: one line for a person, and exit code 2."""


class ClearloopError(Exception):
    """Bad input of any kind. The message says what is wrong, where, and what to do."""
