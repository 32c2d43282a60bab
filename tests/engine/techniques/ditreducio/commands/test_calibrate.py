"""``paretone calibrate`` shows its trials while it runs."""

from __future__ import annotations

import io
import math
import threading

import pytest

from engine.commands.terminal import Terminal
from engine.errors import PlainError
from engine.sampling.actions import SkipAction
from engine.session.events import PreparationReport, Progress
from engine.techniques import ditreducio
from engine.techniques.ditreducio.commands.calibrate import _Trials
from engine.techniques.ditreducio.record import CALIBRATION, Trial


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def report(error: float = 0.1, accepted: bool = True) -> PreparationReport:
    return PreparationReport(1, ditreducio.TECHNIQUE.name, Trial(CALIBRATION, 1, 2, SkipAction.TS, error, accepted))


def test_accepted_trials_are_counted() -> None:
    stream = Screen()
    hear = _Trials(Terminal(threading.Event(), stream=stream))
    hear(report(accepted=True))
    hear(report(accepted=False))
    hear(Progress(1, 1, 2, None, ""))
    assert "1 of 2 skips accepted" in stream.getvalue()


def test_an_error_that_is_no_number_ends_the_calibration() -> None:
    with pytest.raises(PlainError, match=r"invalid numbers .* at step 2, layer 3"):
        _Trials(Terminal(threading.Event(), stream=io.StringIO()))(report(math.nan))
