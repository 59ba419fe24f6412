"""An explanation says how the actions of a log were chosen: at random, or by a law that it gives."""

from clearloop.explanation.explanation import Account, Explanation, Law, explain

__all__ = ["Account", "Explanation", "Law", "explain"]
