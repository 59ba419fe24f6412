"""How the actions of a log were chosen: at random, or by a law; and the law as a controller."""

from clearloop.explanation.account import Account
from clearloop.explanation.explain import Explanation, explain
from clearloop.explanation.law import Law

__all__ = ["Account", "Explanation", "Law", "explain"]
