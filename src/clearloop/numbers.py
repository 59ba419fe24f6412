"""Numbers as people read them."""

MINUS = "\N{MINUS SIGN}"


def true_minus(text: str) -> str:
    """With the minus signs that pages print."""
    return text.replace("-", MINUS)


def number(value: float, digits: int = 4) -> str:
    """As pages print it, with a true minus sign: `−49.8`; never `−0`."""
    return true_minus(f"{value + 0.0:.{digits}g}")


def signed(value: float) -> str:
    """As `number`, with a plus sign where it is positive."""
    return ("+" if value > 0 else "") + number(value)


def quantity(value: float, unit: str) -> str:
    """A value with its unit, if it has one, as pages print it: `−49.8 N`."""
    return f"{number(value)} {unit}".rstrip()
