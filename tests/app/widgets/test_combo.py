"""Entries of combo boxes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QStringListModel, Qt
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from paretone_app.widgets.boxes import entry


def test_an_entry_can_be_disabled(qtbot: QtBot) -> None:
    combo = QComboBox()
    qtbot.addWidget(combo)
    combo.addItems(["one", "two"])
    entry(combo, 1).setEnabled(False)
    flags = combo.model().index(1, 0).flags()
    assert not flags & Qt.ItemFlag.ItemIsEnabled
    assert combo.model().index(0, 0).flags() & Qt.ItemFlag.ItemIsEnabled


def test_another_model_has_no_such_entries(qtbot: QtBot) -> None:
    combo = QComboBox()
    qtbot.addWidget(combo)
    combo.setModel(QStringListModel(["one"], combo))
    with pytest.raises(TypeError, match="QStringListModel"):
        entry(combo, 0)
