"""Progress in a terminal, and Ctrl-C."""

import io
import os
import signal
import threading
import time

import pytest

from paretone.commands import terminal
from paretone.commands.terminal import Terminal, cancelling, exit_code, terminable
from paretone.errors import Cancelled
from paretone.own_process import SIGNALS
from paretone.session.events import EngineStatus, Progress


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_few_lines() -> None:
    stream = io.StringIO()
    terminal = Terminal(threading.Event(), stream=stream)
    terminal.status("Synthesising")
    for step in range(100):
        terminal.hear(Progress(1, step + 1, 100, None, ""))
    terminal.clear()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Synthesising"
    assert [line.split("%")[0].strip() for line in lines[1:]] == ["25", "50", "75", "100"]
    assert "\r" not in stream.getvalue()
    stream = io.StringIO()
    terminal = Terminal(threading.Event(), stream=stream)
    for step in range(3):
        terminal.hear(Progress(1, step + 1, 1000, 1800.0, ""))
    assert stream.getvalue() == "  0 %, about 30 min left\n", "at once, if it takes long"


def test_a_screen_gets_one_bar_whose_figures_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Screen()
    terminal = Terminal(threading.Event(), stream=stream)
    terminal.status("What may the layers skip?")
    terminal.remark = "12 of 45 skips accepted"
    for columns, shown in (
        ("240", f"{'█' * 12}{'░' * 12}  50 %, about 12 min left, 12 of 45 skips accepted  What may the layers skip?"),
        ("80", "████░░░░  50 %, about 12 min left, 12 of 45 skips accepted  What may the layer…"),
        ("60", "███░░░  50 %, about 12 min left, 12 of 45 skips accepted  …"),
    ):
        monkeypatch.setenv("COLUMNS", columns)
        terminal.progress(1, 2, 720.0)
        assert stream.getvalue().split("\x1b[K")[-1] == shown
    assert "\n" not in stream.getvalue()
    terminal.begin()
    terminal.progress(2, 2)
    assert "accepted" not in stream.getvalue().split("\x1b[K")[-1]
    terminal.clear()
    assert stream.getvalue().endswith("\r\x1b[K")
    terminal = Terminal(threading.Event(), quiet=True, stream=(stream := Screen()))
    terminal.status("Synthesising")
    terminal.progress(1, 1)
    terminal.clear()
    assert stream.getvalue() == ""


def test_every_report_is_a_chance_to_stop() -> None:
    cancelled = threading.Event()
    terminal = Terminal(cancelled, stream=io.StringIO())
    terminal.check()
    cancelled.set()
    for report in (
        terminal.check,
        lambda: terminal.status(""),
        lambda: terminal.hear(EngineStatus(1, "")),
        lambda: terminal.hear(Progress(1, 0, 1, None, "")),
        lambda: terminal.progress(0, 1),
    ):
        with pytest.raises(Cancelled):
            report()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM for one process")
def test_one_signal_ends_what_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "GRACE_SECONDS", 0.05)
    with cancelling():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(600)
    assert exit_code() == 143


def test_what_has_asked_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "GRACE_SECONDS", 0.05)
    with cancelling() as cancelled:
        signal.raise_signal(signal.SIGINT)
        assert cancelled.is_set()
        time.sleep(0.2)
    with cancelling():
        signal.raise_signal(signal.SIGINT)  # And what ends in time.
    time.sleep(0.2)


def test_a_signal_that_the_process_was_started_to_ignore_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with cancelling() as cancelled:
            signal.raise_signal(signal.SIGINT)
            assert not cancelled.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN])
def test_the_first_signal_cancels_and_the_second_one_ends(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with terminable():
        assert exit_code() == 130
        with cancelling() as cancelled:
            signal.raise_signal(number)
            assert cancelled.is_set() and exit_code() == 128 + number
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_names_of_others_control_no_terminal() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\r\x9bK\u202eevil"
    stream = Screen()
    terminal = Terminal(threading.Event(), stream=stream)
    for tell in (terminal.status, terminal.say, terminal.wait):
        tell(hostile)
    terminal.progress(1, 2)
    terminal.clear()
    kept = stream.getvalue().replace("\r\x1b[K", "")
    assert not any(one in kept for one in "\x1b\x07\r\x9b\u202e")
    assert "\\u001b[2J" in kept
