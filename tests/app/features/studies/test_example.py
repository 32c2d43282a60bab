"""“Open example”: one press shows a finished study, which can be used like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.studies import definition, example
from paretone.studies.study import results_folder
from paretone_app.features.studies.panel import StudiesPanel
from paretone_app.shell.window import MainWindow
from tests.app.conftest import PATIENCE_MILLISECONDS
from tests.app.features.studies.studying import shown, write
from tests.engine.studies import small


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "file alone"])
def test_one_press_opens_the_example(
    window: MainWindow,
    panel: StudiesPanel,
    finished: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    qtbot: QtBot,
) -> None:
    file = write(tmp_path, "example", sentences=1)
    monkeypatch.setattr(example, "FILE", file)
    presenter = window.features["studies"]
    monkeypatch.setattr(presenter, "_studies", tmp_path / "user")
    if finished:
        small.finished(tmp_path / "made.study", definition.read(file))
        example.pack(tmp_path / "made.study", results_folder(file), file)
    assert panel.example_button.isVisibleTo(panel), "the empty panel offers it"
    qtbot.mouseClick(panel.example_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: presenter.summary is not None, timeout=PATIENCE_MILLISECONDS)
    shown(window, qtbot)
    summary = presenter.summary
    assert summary.folder.parent == tmp_path / "user" and summary.title == "Small"
    assert (summary.made, summary.left) == ((3, 0) if finished else (0, 3))
    assert panel.table.isVisibleTo(panel)
    assert panel.run_button.text().replace("&", "") == ("Run again" if finished else "Run")
