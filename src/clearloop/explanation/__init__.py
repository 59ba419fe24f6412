"""An explanation says how the actions of a log were chosen: at random, or by a law that it gives."""

from clearloop.explanation.explanation import Account, Explanation, explain
from clearloop.explanation.laws import Law, begin_at_mean

__all__ = ["Account", "Explanation", "Law", "begin_at_mean", "explain"]
