"""The Transfer panel: what is ticked is asked for; what was measured is shown with its verdict and what is advised."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.models.base import Utterance, Voice
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.record import Sentence, SentenceTransfer, TransferReport
from paretone_app.features.transfer.panel import COMBINATIONS, TransferActions, TransferPanel
from tests.app.acting import acts_of

SENTENCES = ("One.", "Two.", "Three.")
ANN, BEN = Voice("ann", "Ann", "ann.wav", "Hi."), Voice("ben", "Ben", "ben.wav", "Hi.")


@pytest.fixture
def panel(qtbot: QtBot) -> TransferPanel:
    made = TransferPanel(SENTENCES, acts_of(TransferActions))
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


def test_combinations_are_the_engines() -> None:
    assert tuple(name for name, _ in COMBINATIONS) == ditreducio.COMBINATIONS


def test_every_ticked_sentence_in_every_ticked_voice(panel: TransferPanel, qtbot: QtBot) -> None:
    tick(panel, qtbot, 0)
    tick(panel, qtbot, 2)
    panel.voices.item(1).setCheckState(Qt.CheckState.Checked)
    wanted = tuple(Utterance(text, voice) for voice in (ANN, BEN) for text in ("Two.", "Three."))
    assert "2 sentences × 2 voices = 4 to speak" in panel._count.text()
    assert panel.chosen == wanted
    assert panel.can.measure.isEnabled() and panel.can.calibrate.isEnabled()
    qtbot.keyClick(panel.combine, Qt.Key.Key_Down)
    assert panel.combination == "mean"


def test_nothing_ticked_and_nothing_possible_are_said(panel: TransferPanel, qtbot: QtBot) -> None:
    tick(panel, qtbot, 0)
    tick(panel, qtbot, 1)
    assert "Tick a sentence" in panel.can.measure.reason and "Tick a sentence" in panel.can.calibrate.reason
    panel.can.measure.set_reason("Calibrate first.")
    assert panel.verdict.text() == "Calibrate first."


def test_a_table_that_serves_all_is_praised_and_nothing_is_advised(panel: TransferPanel) -> None:
    panel.show_report(report(0.1))
    assert "transfers well" in panel.verdict.text()
    assert not panel.advised_button.isVisibleTo(panel)
    assert panel.table.rowCount() == 3
    assert [panel.table.item(0, column).text() for column in range(6)] == [
        "own",
        "ann",
        "100",
        "0.1500",
        "0.100",
        "0 %",
    ]
    panel.set_table("table")
    assert panel.table.rowCount() == 3
    panel.set_table("another table")
    assert panel.table.rowCount() == 0


def test_only_what_transfers_well_is_shown_in_green(panel: TransferPanel) -> None:
    panel.show_report(report(0.1))
    assert panel.verdict.property("look") == "good"
    rows = tuple(measured("Two.", voice, 0.1, 0.78) for voice in ("ann", "ben"))
    panel.show_report(TransferReport("table", 0.1, "mae", (measured("One.", "ann", 0.1, 0.75),), rows))
    assert panel.verdict.property("look") == "warning"


def test_what_is_served_worse_is_advised_to_calibrate_on(panel: TransferPanel, qtbot: QtBot) -> None:
    panel.set_own((Utterance("One.", ANN),))
    panel.show_report(report(0.4))
    assert "voice ben" in panel.verdict.text()
    assert panel.advised_button.isVisible()
    assert panel.advised == (Utterance("One.", ANN), Utterance("Two.", BEN)) and panel.combination == "worst"


def test_ticked_voices_stay_ticked(panel: TransferPanel) -> None:
    panel.voices.item(0).setCheckState(Qt.CheckState.Unchecked)
    panel.voices.item(1).setCheckState(Qt.CheckState.Checked)
    panel.set_voices((BEN, ANN))
    assert {one.voice.id for one in panel.chosen} == {"ben"}
    panel.set_voices((ANN,))
    assert {one.voice.id for one in panel.chosen} == {"ann"}
