"""The studies that are open in the window: the Studies panel lists them, the trade-off view draws them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal


class OpenStudies(QObject):
    """The studies that the window shows: a folder each, as :func:`paretone.studies.results.read` takes it."""

    changed = Signal(object)
    """A :class:`~pathlib.Path`: the study was opened, or finished takes were added to it."""
    removed = Signal(object)
    """A :class:`~pathlib.Path`: the study is shown no longer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folders: dict[Path, None] = {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """Open studies, in the order of opening."""
        return tuple(self._folders)

    def add(self, folder: Path) -> None:
        """Open ``folder``; one that is open already is announced again."""
        folder = _absolute(folder)
        self._folders.setdefault(folder)
        self.changed.emit(folder)

    def touch(self, folder: Path) -> None:
        """Say that ``folder`` has more takes than before; it is opened if it is not."""
        self.add(folder)

    def remove(self, folder: Path) -> None:
        """Close ``folder``; nothing happens if it is not open."""
        folder = _absolute(folder)
        if folder in self._folders:
            del self._folders[folder]
            self.removed.emit(folder)


def _absolute(folder: Path) -> Path:
    """One name for one folder."""
    return Path(folder).expanduser().resolve()
