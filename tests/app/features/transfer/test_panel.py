"""The Transfer panel: what is ticked is asked for; what was measured is shown with its verdict and what is advised."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models.base import Utterance, Voice
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.record import Sentence, SentenceTransfer, TransferReport
from paretone_app.features.transfer.panel import COMBINATIONS, TransferPanel
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind
from tests.app.acting import acts
from tests.app.sharing import cancel_all

SENTENCES = ("One.", "Two.", "Three.")
ANN, BEN = Voice("ann", "Ann", "ann.wav", "Hi."), Voice("ben", "Ben", "ben.wav", "Hi.")


@pytest.fixture
def panel(qtbot: QtBot) -> TransferPanel:
    made = TransferPanel(SENTENCES, *acts(3))
    qtbot.addWidget(made)
    made.set_voices((ANN, BEN))
    made.show()
    return made


def measured(text: str, voice: str, distance: float, exceeding: float = 0.0) -> SentenceTransfer:
    return SentenceTransfer(Sentence(text, voice, 100, 50), (0.1, 0.2), distance, exceeding)


def report(other: float) -> TransferReport:
    unseen = (measured("Two.", "ann", 0.1), measured("Two.", "ben", other))
    return TransferReport("table", 0.1, "mae", (measured("One.", "ann", 0.1),), unseen)


def tick(panel: TransferPanel, qtbot: QtBot, row: int) -> None:
    panel.sentences.setCurrentRow(row)
    qtbot.keyClick(panel.sentences, Qt.Key.Key_Space)


def test_every_ticked_sentence_in_every_ticked_voice(panel: TransferPanel, qtbot: QtBot) -> None:
    assert tuple(name for name, _ in COMBINATIONS) == ditreducio.COMBINATIONS
    tick(panel, qtbot, 0)
    tick(panel, qtbot, 2)
    panel.voices.item(1).setCheckState(Qt.CheckState.Checked)
    wanted = tuple(Utterance(text, voice) for voice in (ANN, BEN) for text in ("Two.", "Three."))
    assert panel.chosen == wanted and "2 sentences × 2 voices = 4 to speak" in panel.count.text()
    assert panel.measure.isEnabled() and panel.calibrate.isEnabled()
    qtbot.keyClick(panel.combine, Qt.Key.Key_Down)
    assert panel.combination == "mean"
    # Nothing ticked and nothing possible are said.
    tick(panel, qtbot, 1)
    tick(panel, qtbot, 2)
    assert "Tick a sentence" in panel.measure.reason and "Tick a sentence" in panel.calibrate.reason
    panel.measure.set_reason("Calibrate first.")
    assert panel.verdict.text() == "Calibrate first."


def test_a_table_that_serves_all_is_praised_and_nothing_is_advised(panel: TransferPanel) -> None:
    panel.show_report(report(0.1))
    assert "transfers well" in panel.verdict.text() and panel.verdict.property("look") == "good"
    assert not panel.advised_button.isVisibleTo(panel)
    row = [panel.table.item(0, column).text() for column in range(6)]
    assert row == ["own", "ann", "100", "0.1500", "0.100", "0 %"]
    for table, rows in (("table", 3), ("another table", 0)):
        panel.set_table(table)
        assert panel.table.rowCount() == rows
    rows = tuple(measured("Two.", voice, 0.1, 0.78) for voice in ("ann", "ben"))
    panel.show_report(TransferReport("table", 0.1, "mae", (measured("One.", "ann", 0.1, 0.75),), rows))
    assert panel.verdict.property("look") == "warning"


def test_what_is_served_worse_is_advised_to_calibrate_on(panel: TransferPanel, qtbot: QtBot) -> None:
    panel.own = (Utterance("One.", ANN),)
    panel.show_report(report(0.4))
    assert "voice ben" in panel.verdict.text() and panel.advised_button.isVisible()
    assert panel.advised == (Utterance("One.", ANN), Utterance("Two.", BEN)) and panel.combination == "worst"


def test_ticked_voices_stay_ticked(panel: TransferPanel) -> None:
    panel.voices.item(0).setCheckState(Qt.CheckState.Unchecked)
    panel.voices.item(1).setCheckState(Qt.CheckState.Checked)
    panel.set_voices((BEN, ANN))
    assert {one.voice.id for one in panel.chosen} == {"ben"}
    panel.set_voices((ANN,))
    assert {one.voice.id for one in panel.chosen} == {"ann"}


@pytest.fixture
def window(shared_window: MainWindow, qtbot: QtBot) -> Iterator[MainWindow]:
    """The window that all tests share, with the tables that others calibrated."""
    shared_window.state.selection.set_option("steps", 4)
    yield shared_window
    cancel_all(shared_window.jobs)
    qtbot.waitUntil(lambda: not shared_window.jobs.busy)


def test_a_table_is_measured_on_what_it_has_not_seen(window: MainWindow, qtbot: QtBot) -> None:
    strategy, shown = window.features["strategy"].state, window.panels["transfer"]
    # Without a table the reason is said.
    assert not shown.measure_button.isEnabled() and "calibrate first" in shown.verdict.text()
    assert shown.calibrate_button.isEnabled()
    strategy.calibrate_on((shown.chosen[0],))
    qtbot.waitUntil(lambda: not window.jobs.busy and shown.measure_button.isEnabled())
    with qtbot.waitSignal(window.jobs.ended):
        shown.measure_button.click()
        assert [job.kind for job in window.jobs.running] == [Kind.TRANSFER]
        assert shown.measure_button.toolTip() == "The transfer is being measured, or waits for it in the queue."
    report = shown.report
    assert [one.sentence.text for one in report.calibrated] == [shown.chosen[0].text.rstrip(".")]
    assert [one.sentence.text for one in report.unseen] == [shown.chosen[1].text.rstrip(".")]
    assert shown.table.rowCount() == 2
    shown.sentences.item(1).setCheckState(Qt.CheckState.Unchecked)
    shown.measure.trigger()
    assert "tick other sentences" in window.notices.banner.text and report.verdict in shown.verdict.text()
    shown.sentences.item(1).setCheckState(Qt.CheckState.Checked)
    # Nothing is known of what an imported table was made on.
    strategy.replace_table(replace(strategy.table, origin="imported from there"), "import")
    strategy.measure_transfer(shown.chosen)
    assert window.jobs.running[0].command.request.calibrated == ()


def test_several_sentences_give_one_table(window: MainWindow, qtbot: QtBot) -> None:
    strategy, shown = window.features["strategy"].state, window.panels["transfer"]
    chosen = shown.chosen
    assert len(chosen) == 2
    with qtbot.waitSignal(window.jobs.ended):
        shown.calibrate_button.click()
    # The small model reads full stops as ends of passages.
    assert strategy.calibrated_on == tuple(replace(one, text=one.text.rstrip(".")) for one in chosen)
    assert "worst error of 2 sentences" in strategy.table.origin
