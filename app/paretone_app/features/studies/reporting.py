"""The report of a study is written in the background, and opened."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from paretone import files
from paretone.errors import PlainError, StudyError
from paretone_app.shell.background import Background
from paretone_app.shell.notices import Notices


class StudyReporting(QObject):
    """Writes reports, with what listeners in ``trials`` said of the study's takes."""

    ended = Signal()
    """A report is written, or cannot be."""

    def __init__(self, trials: Path, notices: Notices, background: Background, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trials, self._notices, self._background = trials, notices, background

    def write(self, study: Path) -> None:
        """Write the report of the study in this folder, and open it."""
        from paretone.listening.results import listened
        from paretone.studies.report import write_report
        from paretone.studies.results import read

        place = study / "report"

        def make() -> Path:
            try:
                place.mkdir(exist_ok=True)
            except OSError as error:
                raise StudyError(f"{place} could not be created: {files.reason(error)}.") from error
            return write_report(read(study), place, listened(self._trials))[0]

        self._background.run(make, self._written)

    def _written(self, page: Path | BaseException) -> None:
        self.ended.emit()
        if isinstance(page, PlainError):
            self._notices.warn(str(page))
        elif isinstance(page, BaseException):
            raise page
        else:
            self._notices.note(f"Wrote {page}")
            self._notices.say(f"Wrote {page}; the CSV and LaTeX tables are in the same folder.", "info")
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(page)))
