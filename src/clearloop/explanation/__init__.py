"""An explanation says how the actions of a log were chosen: at random, or by a law that it gives."""

from clearloop.explanation.explanation import Account, Explanation, explain
from clearloop.explanation.laws import Law

__all__ = ["Account", "Explanation", "Law", "explain"]
