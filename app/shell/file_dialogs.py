"""Asking for a file or a folder without blocking: the dialog opens, and what is chosen is handed over later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

JSON = "JSON (*.json)"
SOUND = "Sound (*.wav *.flac *.ogg *.mp3)"
PLOTS = {"svg": "SVG (*.svg)", "png": "PNG (*.png)", "csv": "CSV (*.csv)"}
"""The forms in which plots are saved, by the endings of files."""


def ask_for_file(parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object]) -> None:
    """Ask for an existing file of ``kinds``, in Qt's form of a filter."""
    dialog = _dialog(parent, title, kinds, chosen)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.open()


def ask_for_folder(parent: QWidget, title: str, chosen: Callable[[Path], object], start: str = "") -> None:
    """Ask for a folder, from ``start`` on."""
    dialog = _dialog(parent, title, "", chosen)
    dialog.setDirectory(start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.open()


def ask_where_to_write(
    parent: QWidget, title: str, kinds: str, proposal: str | Path, chosen: Callable[[Path], object]
) -> None:
    """Ask for a file to write, by the name or path ``proposal`` unless the user gives another."""
    dialog = _dialog(parent, title, kinds, chosen)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(Path(proposal).suffix)
    dialog.selectFile(str(proposal) if isinstance(proposal, Path) else proposal.replace("/", "-"))
    dialog.open()


def _dialog(parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object]) -> QFileDialog:
    dialog = QFileDialog(parent, title, filter=f"{kinds};;All files (*)" if kinds else "")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: chosen(Path(path)))
    return dialog
