"""Before a download: its licence, its size, and no key that accepts by accident."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.models.files.releases import RELEASES, Extent
from paretone_app.features.setup.presenter import size_text
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS

MISSING = "E2TTS_Base"
"""A model whose weights are not there."""


def test_enter_does_not_accept_a_licence(
    borrowed_window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens there, so that the size is not known at once, wherever the test runs.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    borrowed_window.state.selection.consider_model(MISSING)
    borrowed_window.panels["setup"].model_choice.can.download.trigger()
    box = borrowed_window.findChild(QMessageBox)
    assert "CC-BY-NC-4.0" in box.text()
    assert box.informativeText().endswith("Asking the server for the size…")
    qtbot.waitUntil(lambda: "The size is not known:" in box.informativeText(), timeout=PATIENCE_MILLISECONDS)
    assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
    assert {one.text().replace("&", "") for one in box.buttons()} == {"Accept and download", "Cancel"}
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert not borrowed_window.jobs.busy
    qtbot.waitUntil(lambda: not borrowed_window.findChildren(QMessageBox))


def test_the_size_is_told_or_why_it_is_not_known() -> None:
    one, two = RELEASES[MISSING].files[:2]
    assert size_text(Extent({one: 1_500_000_000, two: 10_000_000}, 1_510_000_000)) == "They are 1.51 GB."
    assert size_text(Extent({one: 1_500_000_000}, 500_000_000)) == "They are 1.50 GB; 1.00 GB of them are here."
    assert size_text(PlainError("There is no network.")) == "The size is not known: There is no network."
