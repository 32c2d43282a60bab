"""The first start speaks: a newcomer hears a voice before reading or pressing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, QTimer

from paretone.models import catalogue
from paretone_app.state.jobs import Kind

if TYPE_CHECKING:
    from paretone_app.shell.window import MainWindow

_KEY = "greeted"
WORDS = (
    "You hear the baseline: the model without acceleration. Type a text in Setup, follow the steps above, or take the "
    "tour (Ctrl+F1)."
)


class Greeting(QObject):
    """Speaks once, when the first model is loaded and the window is built, unless the user acts first."""

    def __init__(self, window: MainWindow, settings: QSettings) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self._selected = window.state.selection.text, window.state.selection.model_id
        self._waits = self.is_first(settings)
        if self._waits:
            window.built.connect(self._later)
            window.jobs.began.connect(self._look)
            window.jobs.ended.connect(self._later)

    @staticmethod
    def is_first(settings: QSettings) -> bool:
        """Whether no window was closed, and no greeting spoken, with these settings."""
        return not settings.contains(_KEY) and not settings.contains("geometry")

    def _look(self, job: object) -> None:
        """Give way to any job but a load."""
        if self._window.jobs.running[-1].kind is not Kind.LOAD:
            self._waits = False

    def _later(self, *ended: object) -> None:
        # After this event: the window enables actions at its end.
        if self._waits:
            QTimer.singleShot(0, self._speak)

    def _speak(self) -> None:
        window, selection = self._window, self._window.state.selection
        if not (self._waits and window.is_built and selection.ready) or window.jobs.busy:
            return
        self._waits = False
        if (selection.text, selection.model_id) != self._selected or window.state.availability.why_not_synthesise():
            return
        self._settings.setValue(_KEY, True)
        selection.set_text(catalogue.greeting())
        window.state.synthesis.synthesise_baseline()
        if not window.notices.banner.waits:
            window.notices.say(WORDS, "info")
