"""Help › Check installation: what is found is shown, and copied without private folders."""

from dataclasses import replace
from pathlib import Path

import torch
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.computing import Computing
from paretone.doctor import examine
from paretone.session.events import EngineReady
from paretone_app.shell.bridge import Background
from paretone_app.shell.window import MainWindow
from tests.app.conftest import SMALL
from tests.app.sharing import borrowed  # noqa: F401

PARTS = f"{SMALL} extras doctor"


def closed(window: MainWindow, qtbot: QtBot) -> None:
    """Close the dialog once it has found what there is, and wait until it is gone with its thread."""
    doctor = window.features["doctor"]
    qtbot.waitUntil(doctor.dialog.copy_button.isEnabled)
    doctor.dialog.close()
    qtbot.waitUntil(lambda: doctor.dialog is None and not doctor.findChildren(Background))


def test_findings_are_shown_and_copied_without_private_folders(window: MainWindow, qtbot: QtBot) -> None:
    window.action["doctor"].trigger()
    dialog = window.features["doctor"].dialog
    assert dialog is not None and not dialog.copy_button.isEnabled() and "Looking" in dialog.page.toPlainText()
    qtbot.waitUntil(dialog.copy_button.isEnabled)
    shown = dialog.page.toPlainText()
    for one in examine(window.state.machine.devices):
        assert f"{one.name}: " in shown
    assert "models run on cpu" in shown
    dialog.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    assert "Paretone: 0." in copied and str(Path.home()) + "/" not in copied and "problem" in copied
    closed(window, qtbot)


def test_the_status_bar_says_what_computes(window: MainWindow, qtbot: QtBot) -> None:
    button = window.features["doctor"].button
    assert button.isVisible() and button.line == window.state.machine.computing.line
    assert f"torch {torch.__version__} · CPU: " in button.line and "CPU: " in button.text()
    assert button.line in button.toolTip() and button.line in button.accessibleName()
    # Where there is no room it is cut off, and the window becomes no wider.
    window.resize(1024, 700)
    QApplication.processEvents()
    assert window.width() == 1024 and button.geometry().right() <= window.statusBar().width()
    window.resize(window.minimumSizeHint())
    QApplication.processEvents()
    assert button.text().rstrip("…") in button.line and button.line in button.toolTip()
    button.click()
    closed(window, qtbot)


def test_a_card_that_is_not_used_is_said_aloud(window: MainWindow, qtbot: QtBot) -> None:
    presenter = window.features["doctor"]
    machine, found = window.state.machine, window.state.machine.computing
    idle = Computing("2.13.0", "CPU, 1 thread", "this is PyTorch's build for processors", "Do this.", "NVIDIA H100")
    ready = EngineReady(0, machine.device, machine.devices, machine.title, idle)
    machine.follow(ready)
    presenter.follow(ready)
    banner = window.notices.banner
    assert banner.text == "Models run on the processor, not on NVIDIA H100: this is PyTorch's build for processors."
    assert presenter.button.property("look") == "alarm" and "Do this." in presenter.button.toolTip()
    banner.answers[0].click()
    closed(window, qtbot)
    # A card that could be used where the processor was chosen (menu Model).
    selection, info = window.state.selection, window.state.selection.loaded
    selection.set_info(replace(info, device_type="cpu"))
    machine.follow(replace(ready, computing=Computing("2.13.0+cu130", "NVIDIA H100")))
    assert "no GPU: the processor is chosen, not NVIDIA H100" in presenter.button.line
    assert presenter.button.property("look") == "quiet"
    selection.set_info(info)
    machine.follow(replace(ready, computing=found))
    assert presenter.button.line == found.line
