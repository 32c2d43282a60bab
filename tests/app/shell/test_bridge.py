"""Events cross from a thread to Qt: in order, none lost that matters, figures coalesced."""

from __future__ import annotations

import gc
import sys
import threading

import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from paretone.sampling.actions import SkipAction
from paretone.session.events import Event, JobFinished, PreparationReport, Progress, Telemetry
from paretone.techniques.ditreducio.record import CALIBRATION, Trial
from paretone_app.shell.bridge import Bridge


def telemetry(step: int) -> Telemetry:
    return Telemetry(1, 0, 1, step, 1000, 0.01, 100.0, 0.01 * step, 0.0, None, None, 0)


def trial(layer: int) -> PreparationReport:
    return PreparationReport(1, "ditreducio", Trial(CALIBRATION, 1, layer, SkipAction.TS, 0.1, True))


@pytest.mark.parametrize("at_once", [True, False], ids=["before the window looks", "while it looks"])
def test_figures_are_coalesced_and_trials_are_all_kept(qtbot: QtBot, at_once: bool) -> None:
    bridge = Bridge()
    figures: list[Telemetry] = []
    trials: list[PreparationReport] = []
    bridge.telemetry.connect(figures.append)
    bridge.reports.connect(trials.extend)

    def flood() -> None:
        for index in range(2000):
            bridge.post(telemetry(index))
            bridge.post(trial(index))
        bridge.post(JobFinished(1))

    with qtbot.waitSignal(bridge.happened):
        thread = threading.Thread(target=flood)
        thread.start()
        if at_once:
            thread.join()
    thread.join()
    assert [one.report.layer for one in trials] == list(range(2000))
    assert figures[-1].step == 1999
    # How often it looks meanwhile depends on how long the flood takes.
    assert len(figures) == 1 if at_once else [one.step for one in figures] == sorted({one.step for one in figures})


def test_what_ends_a_job_comes_after_its_figures(qtbot: QtBot) -> None:
    bridge = Bridge()
    seen: list[Event] = []
    for signal in (bridge.happened, bridge.progress, bridge.telemetry):
        signal.connect(seen.append)
    with qtbot.waitSignal(bridge.happened):
        bridge.post(Progress(1, 3, 4, None, "nearly"))
        bridge.post(telemetry(3))
        bridge.post(JobFinished(1))
    assert [type(one) for one in seen] == [Progress, Telemetry, JobFinished]


def test_figures_arrive_without_any_lifecycle_event(qtbot: QtBot) -> None:
    bridge = Bridge()
    with qtbot.waitSignal(bridge.progress) as blocker:
        bridge.post(Progress(1, 1, 4, 2.0, ""))
    assert blocker.args[0].done == 1
    with qtbot.waitSignal(bridge.progress) as blocker:
        bridge.post(Progress(1, 2, 4, 1.0, ""))
    assert blocker.args[0].done == 2


class _Sender(QObject):
    sent = Signal(object)


def test_emitting_signals_drops_no_reference(qtbot: QtBot) -> None:
    """PYSIDE-3474: PySide6 6.12 takes one reference from True and None at each call on Python 3.11, and aborts."""
    sender = _Sender()
    received: list[object] = []
    sender.sent.connect(received.append)
    # What the collector found meanwhile may have held hundreds of them.
    gc.collect()
    gc.disable()
    try:
        before = sys.getrefcount(True), sys.getrefcount(None)
        for _ in range(2000):
            sender.sent.emit(1)
        after = sys.getrefcount(True), sys.getrefcount(None)
    finally:
        gc.enable()
    assert len(received) == 2000
    assert min(one - other for one, other in zip(after, before, strict=True)) > -500
