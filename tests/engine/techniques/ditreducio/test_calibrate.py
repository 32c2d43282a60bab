"""``paretone calibrate`` shows its trials while it runs."""

import argparse
import io
import math
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.commands.terminal import Terminal
from paretone.errors import PlainError, SettingError
from paretone.sampling.actions import SkipAction
from paretone.session.events import PreparationReport, Progress
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.calibrate_command import _Calibration, _figures, _planned, _shown, _Trials, declare
from paretone.techniques.ditreducio.record import CALIBRATION, Trial
from tests.engine.commands.test_terminal import Screen
from tests.engine.techniques.ditreducio.observing import calibrate


def report(error: float = 0.1, accepted: bool = True) -> PreparationReport:
    return PreparationReport(1, ditreducio.TECHNIQUE.name, Trial(CALIBRATION, 1, 2, SkipAction.TS, error, accepted))


def test_accepted_trials_are_counted_and_an_error_that_is_no_number_ends_the_calibration() -> None:
    stream = Screen()
    hear = _Trials(Terminal(threading.Event(), stream=stream))
    hear(report(accepted=True))
    hear(report(accepted=False))
    hear(Progress(1, 1, 2, None, ""))
    assert "1 of 2 skips accepted" in stream.getvalue()
    with pytest.raises(PlainError, match=r"invalid numbers .* at step 2, layer 3"):
        _Trials(Terminal(threading.Event(), stream=io.StringIO()))(report(math.nan))


def planned(place: Path, *given: str) -> list[_Calibration]:
    parser = argparse.ArgumentParser()
    declare(parser)
    return _planned(parser.parse_args(["--table", str(place / "t.json"), *given]), "f5-mini")


def test_a_share_is_shown_by_itself_and_a_threshold_with_its_range(tmp_path: Path) -> None:
    (one,) = planned(tmp_path, "--objective", "end", "--operations", "45")
    assert one.words == "for the end at 45 % of the operations"
    one.record = replace(calibrate(0.1), knobs=one.knobs)
    figures = {**_figures(one), "ops_ratio": 0.45, "ops_ratio_of": "model"}
    assert (figures["objective"], figures["operations"], figures["threshold"]) == ("end", 45.0, None)
    shown = _shown([one], [figures])
    assert "budget (%)" in shown and "δ" not in shown
    with pytest.raises(SettingError, match="one budget, --operations"):
        planned(tmp_path, "--objective", "end", "--thresholds", "0.1", "0.2")
    (one,) = planned(tmp_path, "--threshold", "0.1")
    one.record = calibrate(0.1)
    shown = _shown([one], [{**_figures(one), "ops_ratio": 0.45, "ops_ratio_of": "model"}])
    assert "exact range of δ" in shown and "budget" not in shown
