"""Ctrl-C in the middle of a search: it waits for the end of a round, so that nothing is lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether somebody has asked to stop. Asked a second time, it stops at once."""

    asked = False

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def polite_interruption() -> Iterator[Interruption]:
    """While it lasts, Ctrl-C only asks. It does nothing where Ctrl-C does nothing."""
    interruption = Interruption()
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, interruption)
    try:
        yield interruption
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)
