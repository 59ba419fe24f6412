"""How the actions of a log were chosen: at random, or by a law; and the law as a controller."""

from clearloop.explanation.explanation import Account, Explanation, Law, explain

__all__ = ["Account", "Explanation", "Law", "explain"]
