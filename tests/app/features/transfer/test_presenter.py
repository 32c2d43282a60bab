"""The transfer presenter on the real engine: sentences calibrated together, and a table measured on others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models.base import Utterance
from paretone.techniques.ditreducio.record import TransferRequest
from paretone_app.features.transfer.panel import TransferPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind
from tests.app.conftest import PATIENCE_MILLISECONDS


@pytest.fixture
def panel(window: MainWindow) -> TransferPanel:
    window.state.selection.set_option("steps", 4)
    return window.panels["transfer"]


def press(window: MainWindow, button, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: button.isEnabled() and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS):
        button.click()


def test_a_table_is_measured_on_what_it_has_not_seen(panel: TransferPanel, window: MainWindow, qtbot: QtBot) -> None:
    # Without a table the reason is said.
    assert not panel.measure_button.isEnabled()
    assert "calibrate first" in panel.verdict.text()
    assert panel.calibrate_button.isEnabled()
    window.features["strategy"].state.calibrate_on((panel.chosen[0],))
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    press(window, panel.measure_button, qtbot)
    report = panel._report
    assert [one.sentence.text for one in report.calibrated] == [panel.chosen[0].text.rstrip(".")]
    assert [one.sentence.text for one in report.unseen] == [panel.chosen[1].text.rstrip(".")]
    assert panel.table.rowCount() == 2
    panel.sentences.item(1).setCheckState(Qt.CheckState.Unchecked)
    panel.can.measure.trigger()
    assert "tick other sentences" in window.notices.banner.text
    assert report.verdict in panel.verdict.text()
    window.features["strategy"].state.set_threshold(0.2)
    qtbot.waitUntil(
        lambda: panel.table.rowCount() == 0 or window.features["strategy"].state.table.fingerprint == report.table
    )


def test_while_it_is_measured_nothing_else_is_waited_for(
    panel: TransferPanel, window: MainWindow, qtbot: QtBot
) -> None:
    window.features["strategy"].state.calibrate_on((panel.chosen[0],))
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    panel.measure_button.click()
    assert [job.kind for job in window.jobs.running] == [Kind.TRANSFER]
    assert panel.measure_button.toolTip() == "The transfer is being measured; press Esc to cancel."
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert panel.measure_button.isEnabled()


def test_several_sentences_give_one_table(panel: TransferPanel, window: MainWindow, qtbot: QtBot) -> None:
    chosen = panel.chosen
    assert len(chosen) == 2
    press(window, panel.calibrate_button, qtbot)
    # The small model reads full stops as ends of passages.
    assert window.features["strategy"].state.calibrated_on == tuple(
        replace(one, text=one.text.rstrip(".")) for one in chosen
    )
    assert "worst error of 2 sentences" in window.features["strategy"].state.table.origin


def test_an_imported_table_claims_no_sentence_as_its_own(
    window: MainWindow, qtbot: QtBot, panel: TransferPanel
) -> None:
    strategy = window.features["strategy"].state
    state = window.state
    strategy.calibrate()
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    assert strategy.calibrated_on == (Utterance(state.selection.text.rstrip("."), state.selection.voice),)
    strategy.replace_table(replace(strategy.table, origin="imported from there"), "import")
    strategy.measure_transfer(panel.chosen)
    command = window.jobs.running[0].command
    assert isinstance(command.request, TransferRequest)
    assert command.request.calibrated == ()
    assert panel.measure_button.toolTip() == "The transfer is being measured; press Esc to cancel."
