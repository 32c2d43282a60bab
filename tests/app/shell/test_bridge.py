"""Events cross from a thread to Qt: in order, none lost that matters, figures coalesced."""

import gc
import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from paretone.sampling.actions import SkipAction
from paretone.session.events import Event, JobFinished, PreparationReport, Progress, Telemetry
from paretone.techniques.ditreducio.record import CALIBRATION, Trial
from paretone_app.shell.bridge import Background, Bridge
from tests.engine.recorder import PATIENCE_SECONDS


def telemetry(step: int) -> Telemetry:
    return Telemetry(1, 0, 1, step, 1000, 0.01, 100.0, 0.01 * step, 0.0, None, None, 0)


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
            trial = Trial(CALIBRATION, 1, index, SkipAction.TS, 0.1, True)
            bridge.post(PreparationReport(1, "ditreducio", trial))
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


@pytest.fixture
def background(qapp) -> Iterator[Background]:
    made = Background("tested")
    yield made
    made.shut_down()


def test_what_is_returned_or_raised_comes_back_on_this_thread_in_order(background: Background, qtbot: QtBot) -> None:
    came: list[tuple[object, int]] = []

    def refuse() -> None:
        raise MemoryError("no room")

    for work in (threading.get_ident, refuse, lambda: 7):
        background.run(work, lambda found: came.append((found, threading.get_ident())))
    qtbot.waitUntil(lambda: len(came) == 3)
    (worker, here), (error, _), (seven, _) = came
    assert worker != threading.get_ident() == here
    assert isinstance(error, MemoryError) and seven == 7


def test_after_a_shut_down_in_the_middle_of_work_nothing_comes_back(background: Background, qtbot: QtBot) -> None:
    begun, go_on, came = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE_SECONDS)

    background.run(work, came.append)
    background.run(lambda: came.append("what waited"), came.append)
    assert begun.wait(PATIENCE_SECONDS)
    background.shut_down(wait=False)
    go_on.set()
    background.shut_down()
    background.run(lambda: came.append("what came too late"), came.append)
    qtbot.wait(20)
    assert came == []
    assert not [one for one in threading.enumerate() if one.name.startswith("tested")]
