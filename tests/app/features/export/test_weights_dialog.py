"""The dialog that exports a student or a draft."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from paretone.models.base import DraftWeights, ModelInfo, StudentWeights
from paretone_app.features.export import WeightsDialog
from tests.app.presenters import INFO

STUDENT = StudentWeights("/there/student-2.safetensors", "1" * 64, (0, 2), "recovered", 45.0)
DRAFT = DraftWeights("/there/draft-3.safetensors", "2" * 64, (0, 1, 2), (0, 1), True)


def opened(qtbot: QtBot, model: str = "lm-mini") -> WeightsDialog:
    info: ModelInfo = replace(INFO, id=model, title="LM", students=(STUDENT,), drafts=(DRAFT,))
    dialog = WeightsDialog(info)
    qtbot.addWidget(dialog)
    dialog.open()
    return dialog


def said(dialog: WeightsDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel))


def test_it_says_what_is_written_for_whom(qtbot: QtBot) -> None:
    dialog = opened(qtbot)
    assert [dialog.weights.itemText(index) for index in range(2)] == [
        f"Student with 2 layers, 45 min of training ({Path(STUDENT.path).stem})",
        f"Draft with 3 layers ({Path(DRAFT.path).stem})",
    ]
    assert "Layers 0, 2. The folder will hold a Hugging Face checkpoint" in said(dialog)
    assert "SSD" not in said(dialog)
    dialog.weights.setCurrentIndex(1)
    assert "SSD's current settings are included" in said(dialog)
    assert "llm.pt" in said(opened(qtbot, "CosyVoice2-0.5B"))


def test_a_folder_is_proposed_until_one_is_typed(qtbot: QtBot) -> None:
    dialog = opened(qtbot)
    assert Path(dialog.path.text()).name == "lm-mini-student-2"
    dialog.weights.setCurrentIndex(1)
    assert Path(dialog.path.text()).name == "lm-mini-draft-3"
    qtbot.keyClicks(dialog.path, "x")
    dialog.weights.setCurrentIndex(0)
    assert dialog.path.text().endswith("x")


@pytest.mark.parametrize(("place", "words"), [("", "Type a folder."), ("file", "is a file; choose a folder")])
def test_a_place_that_cannot_be_forbids_the_export(qtbot: QtBot, tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "file").write_text("mine")
    dialog = opened(qtbot)
    dialog.path.selectAll()
    qtbot.keyClick(dialog.path, Qt.Key.Key_Delete)
    qtbot.keyClicks(dialog.path, str(tmp_path / place) if place else "")
    assert words in dialog.note.text()
    assert not dialog.export_button.isEnabled()


def test_return_asks_for_what_is_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    dialog = opened(qtbot)
    dialog.weights.setCurrentIndex(1)
    dialog.path.selectAll()
    qtbot.keyClicks(dialog.path, str(tmp_path / "out"))
    with qtbot.waitSignal(dialog.wanted) as asked:
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)
    assert asked.args == ["draft", DRAFT.path, str(tmp_path / "out")]
    assert not dialog.isVisible()
