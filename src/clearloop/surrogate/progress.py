"""Telling of a part of the work as a part of the whole."""

from clearloop.networks import Progress


def portion(progress: Progress | None, done: float, share: float) -> Progress | None:
    """For a part that is `share` of the work and begins when `done` of it is behind."""
    if progress is None:
        return None
    tell = progress
    return lambda of_part, loss: tell(done + share * of_part, loss)
