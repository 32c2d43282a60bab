"""File and folder dialogs that do not block: the choice is passed to a callback. A dialog starts in the folder last
used for the kind of file, or else in the folder for documents; never in the process's working directory."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QDir, QSettings, QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from paretone.audio.recording import readable_kinds, writable_kinds

JSON = "JSON (*.json)"
PLOTS = {"svg": "SVG (*.svg)", "png": "PNG (*.png)", "csv": "CSV (*.csv)"}
"""Formats for saved plots, by file suffix."""
_FOLDERS = "last folders"
"""Settings group: last folder by kind."""


def sound() -> str:
    """Filter of the writable sound formats."""
    return f"Sound ({' '.join(f'*{ending}' for ending in writable_kinds())})"


def recordings() -> str:
    """Filter of the readable sound formats."""
    return f"Audio ({' '.join(f'*{ending}' for ending in readable_kinds())})"


def ask_for_file(parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object]) -> None:
    """Ask for an existing file of ``kinds`` (a Qt filter)."""
    dialog = _dialog(parent, title, kinds, chosen)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.open()


def ask_for_folder(parent: QWidget, title: str, chosen: Callable[[Path], object], start: str = "") -> None:
    """Ask for a folder, at first ``start`` if that is one. Dialogs with the same ``title`` share the last folder."""
    dialog = _dialog(parent, title, "", chosen, Path(start))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.open()


def ask_where_to_write(
    parent: QWidget, title: str, kinds: str, proposal: str | Path, chosen: Callable[[Path], object]
) -> None:
    """Ask for a file to write; ``proposal`` is the default name or full path."""
    typed = isinstance(proposal, Path)
    dialog = _dialog(parent, title, kinds, chosen, Path(proposal).parent if typed else Path())
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(Path(proposal).suffix)
    dialog.selectFile(proposal.name if isinstance(proposal, Path) else proposal.replace("/", "-"))
    dialog.open()


def last_folder(parent: QWidget, kind: str) -> Path:
    """The folder last used for this kind in ``parent``'s window, or the folder for documents."""
    settings = _settings(parent)
    last = Path(str(settings.value(f"{_FOLDERS}/{kind}", ""))) if settings is not None else Path()
    if last.is_absolute() and last.is_dir():
        return last
    documents = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation))
    return documents if documents.is_absolute() and documents.is_dir() else Path(QDir.homePath())


def note_folder(parent: QWidget, kind: str, folder: Path) -> None:
    settings = _settings(parent)
    if settings is not None and folder.is_absolute():
        settings.setValue(f"{_FOLDERS}/{kind}", str(folder))


def _settings(parent: QWidget) -> QSettings | None:
    above: QWidget | None = parent
    while above is not None:
        settings = getattr(above, "settings", None)
        if isinstance(settings, QSettings):
            return settings
        above = above.parentWidget()
    return None


def _dialog(
    parent: QWidget, title: str, kinds: str, chosen: Callable[[Path], object], start: Path = Path()
) -> QFileDialog:
    # Files of one format share a last folder, and so do all plots, and folder dialogs with one title.
    kind = "plot" if kinds in PLOTS.values() else kinds.partition(" (")[0].casefold().removesuffix("s") or title
    begin = start if start.is_absolute() and start.is_dir() else last_folder(parent, kind)
    dialog = QFileDialog(parent, title, str(begin), f"{kinds};;All files (*)" if kinds else "")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def take(path: Path) -> None:
        note_folder(parent, kind, path.parent if kinds else path)
        chosen(path)

    dialog.fileSelected.connect(lambda path: take(Path(path)))
    return dialog
