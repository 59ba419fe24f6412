import os
import signal

import pytest

from clearloop.runs import polite_interruption


@pytest.fixture
def listening() -> object:
    """A test runner may have switched Ctrl-C off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("listening")
def test_ctrl_c_asks_first_and_insists_the_second_time() -> None:
    with polite_interruption() as interruption:
        assert not interruption.asked
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("listening")
def test_where_ctrl_c_is_ignored_it_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with polite_interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert not interruption.asked
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
