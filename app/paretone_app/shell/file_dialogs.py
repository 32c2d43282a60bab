"""Asking for a file or a folder without blocking: the dialog opens, and what is chosen is handed over later.

A dialog opens where the user saved or opened something of the kind last, in this session or an earlier one, or else in
the folder for documents; never in the process's working directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from PySide6.QtCore import QDir, QSettings, QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from paretone.audio.recording import readable_kinds, writable_kinds

JSON = "JSON (*.json)"
PLOTS = {"svg": "SVG (*.svg)", "png": "PNG (*.png)", "csv": "CSV (*.csv)"}
"""The forms in which plots are saved, by the endings of files."""
_FOLDERS = "last folders"
"""Group of settings: by kind, the folder that was used last."""


def sound() -> str:
    """The forms in which sound can be written here."""
    return _filter("Sound", writable_kinds())


def recordings() -> str:
    """The forms in which sound can be read here."""
    return _filter("Audio", readable_kinds())


def _filter(name: str, endings: Iterable[str]) -> str:
    return f"{name} ({' '.join(f'*{ending}' for ending in endings)})"


def ask_for_file(parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object]) -> None:
    """Ask for an existing file of ``kinds``, in Qt's form of a filter."""
    dialog = _dialog(parent, title, kinds, chosen)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.open()


def ask_for_folder(parent: QWidget, title: str, chosen: Callable[[Path], object], start: str = "") -> None:
    """Ask for a folder; from ``start`` on, if that is the full path of one. Folders of one ``title`` are one kind."""
    dialog = _dialog(parent, title, "", chosen, Path(start))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.open()


def ask_where_to_write(
    parent: QWidget, title: str, kinds: str, proposal: str | Path, chosen: Callable[[Path], object]
) -> None:
    """Ask for a file to write, by the name or the full path ``proposal`` unless the user gives another."""
    typed = isinstance(proposal, Path)
    dialog = _dialog(parent, title, kinds, chosen, Path(proposal).parent if typed else Path())
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(Path(proposal).suffix)
    dialog.selectFile(proposal.name if isinstance(proposal, Path) else proposal.replace("/", "-"))
    dialog.open()


def last_folder(parent: QWidget, kind: str) -> Path:
    """The folder where the user of ``parent``'s window saved or opened something of this kind last, or that of
    documents."""
    settings = _settings(parent)
    last = Path(str(settings.value(f"{_FOLDERS}/{kind}", ""))) if settings is not None else Path()
    if last.is_absolute() and last.is_dir():
        return last
    documents = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation))
    return documents if documents.is_absolute() and documents.is_dir() else Path(QDir.homePath())


def note_folder(parent: QWidget, kind: str, folder: Path) -> None:
    """Begin in ``folder`` when something of this kind is asked for again."""
    settings = _settings(parent)
    if settings is not None and folder.is_absolute():
        settings.setValue(f"{_FOLDERS}/{kind}", str(folder))


def _settings(parent: QWidget) -> QSettings | None:
    """Those of the main window that ``parent`` belongs to."""
    above: QWidget | None = parent
    while above is not None:
        settings = getattr(above, "settings", None)
        if isinstance(settings, QSettings):
            return settings
        above = above.parentWidget()
    return None


def _kind(title: str, kinds: str) -> str:
    """What is remembered together: files of one form, all plots, and folders that are asked for by one title."""
    if kinds in PLOTS.values():
        return "plot"
    return kinds.partition(" (")[0].casefold().removesuffix("s") or title


def _dialog(
    parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object], start: Path = Path()
) -> QFileDialog:
    kind = _kind(title, kinds)
    begin = start if start.is_absolute() and start.is_dir() else last_folder(parent, kind)
    dialog = QFileDialog(parent, title, str(begin), f"{kinds};;All files (*)" if kinds else "")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def take(path: Path) -> None:
        note_folder(parent, kind, path.parent if kinds else path)
        chosen(path)

    dialog.fileSelected.connect(lambda path: take(Path(path)))
    return dialog
