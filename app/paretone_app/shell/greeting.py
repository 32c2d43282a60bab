"""The first start opens an example: two takes to hear before any model is loaded, their table, and their study."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, QTimer

from paretone.errors import PlainError
from paretone_app.features.guide import GuidePresenter
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.shell.bridge import arrived

if TYPE_CHECKING:
    from paretone.setting.take import Take
    from paretone_app.shell.window import MainWindow

_KEY = "greeted"
WORDS = (
    "<b>An example:</b> A is the model as it is, B skips what repeats; X switches. Type a text of your own, or take "
    "the tour (Ctrl+F1)."
)


class Greeting(QObject):
    """Plays the example after the first paint. The engine starts when A was heard: its imports make sound stutter."""

    def __init__(self, window: MainWindow, settings: QSettings) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self._player = window.features.find(PlayerPresenter)
        self._studies = window.features.find(StudiesPresenter)
        self._selected = window.state.selection.text, window.state.selection.model_id
        self._sounded = False
        # First: no window was closed, and no example opened, with these settings.
        if not (settings.contains(_KEY) or settings.contains("geometry") or window.results.takes.all):
            window.first = self._begin

    def _begin(self) -> None:
        self._settings.setValue(_KEY, True)
        QTimer.singleShot(10_000, self._go_on)
        self._player.playing.changed.connect(self._follow)
        self._player.playback.connect_device()
        self._studies.read_example(self._open)

    def _open(self, found: tuple[Path, Take, Take] | BaseException) -> None:
        window, selection = self._window, self._window.state.selection
        if self._selected != (selection.text, selection.model_id) or not arrived(found, window.notices.warn):
            self._go_on()
            return
        folder, *takes = found
        for take in takes:
            with suppress(PlainError):  # They are heard all the same; the library's problem is reported elsewhere.
                window.results.takes.add(take)
        selection.adopt_setting(takes[1].setting, takes[1].text, takes[1].voice)
        window.state.comparison.arrange(takes)
        window.action.play.trigger()
        self._studies.opened.open(folder, in_front=False)
        window.features.find(GuidePresenter).greet(WORDS)
        self._player.problem_changed.connect(lambda problem: self._go_on() if problem else None)
        if self._player.why_not_hear() and not self._player.playback.probing:
            self._go_on()

    def _follow(self) -> None:
        sounding = self._player.playing.now.sounding
        if sounding and not self._sounded:
            self._sounded = True
            self._window.build_panels()
        elif self._sounded and not sounding:
            self._go_on()

    def _go_on(self) -> None:
        """Do the rest of the start, once."""
        if self._window.first is not None:
            self._window.first = None
            self._player.playing.changed.disconnect(self._follow)
            self._window.start_engine()
            if not self._sounded:
                self._window.build_panels()
