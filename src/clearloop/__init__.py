"""From the log of a plant to controllers that a person can read, check and sign."""

__version__ = "0.1.0"
