"""Reading takes and studies for the trade-off view, in a separate thread, so that the window never waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from paretone.errors import PlainError
from paretone.listening import results as listening_results
from paretone.setting.library import Library
from paretone_app.features.tradeoff.model.points import Scores, take_points
from paretone_app.features.tradeoff.model.studies import ReadStudy, read_study
from paretone_app.shell.bridge import Background

HEARD = "heard"
"""Names what staircases found among what is read."""


class OnDemandReader(QObject):
    """Reads on demand. What is asked for again while it is read is read once more afterwards, however often it was."""

    study_read = Signal(object)
    """A :class:`ReadStudy`."""
    study_failed = Signal(object, str)
    """The folder of what could not be read as a study, and why, as a sentence."""
    takes_read = Signal(object)
    """The library's points, a tuple."""
    takes_failed = Signal(str)
    heard_read = Signal(object)
    """From where on rows of settings were heard to differ: :class:`HeardFrom` by :class:`HeardFrom`, a tuple."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        """``folder`` is where trials of listening tests are kept."""
        super().__init__(parent)
        self._folder = folder
        self._background = Background("tradeoff", self)
        self._under_way: dict[object, Callable[[], object] | None] = {}

    @property
    def busy(self) -> bool:
        """Whether something is being read."""
        return bool(self._under_way)

    def read_study(self, folder: Path) -> None:
        """Read the study in ``folder``."""
        self._run(folder, lambda: read_study(folder, self._scores()))

    def read_takes(self, library: Library) -> None:
        """Read the takes of ``library``."""
        self._run(None, lambda: take_points(library.summaries(unfinished=False), self._scores()))

    def read_heard(self) -> None:
        """Read what staircases have found."""
        self._run(HEARD, self._heard)

    def shut_down(self) -> None:
        """End the thread."""
        self._background.shut_down()

    def _scores(self) -> Scores:
        try:
            return Scores(listening_results.scores(self._folder))
        except PlainError:
            # The lab says what is wrong with its records; what was measured is there without them.
            return Scores()

    def _heard(self) -> tuple[listening_results.HeardFrom, ...]:
        try:
            return listening_results.heard_from(self._folder)
        except PlainError:
            return ()  # As for the scores.

    def _run(self, what: object, work: Callable[[], object]) -> None:
        if what in self._under_way:
            self._under_way[what] = work
            return
        self._under_way[what] = None
        self._background.run(work, lambda found: self._deliver(what, found))

    def _deliver(self, what: object, found: object) -> None:
        again = self._under_way.pop(what)
        if again is not None:
            self._run(what, again)
        if isinstance(found, PlainError):
            if isinstance(what, Path):
                self.study_failed.emit(what, str(found))
            else:
                self.takes_failed.emit(str(found))
        elif isinstance(found, BaseException):
            raise found
        elif what == HEARD:
            self.heard_read.emit(found)
        elif isinstance(found, ReadStudy):
            self.study_read.emit(found)
        else:
            self.takes_read.emit(found)
