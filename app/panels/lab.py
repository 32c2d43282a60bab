"""Lab: can a difference be heard, blindly? Set a test up, go through its trials, read what it came to."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QStackedWidget, QVBoxLayout, QWidget

from app.listening.abx import AbxSession
from app.listening.mushra import MushraSession
from app.listening.player import Player
from app.listening.remarks import DeviceProblem
from app.listening.session import Session
from app.panels.lab_abx import AbxPage
from app.panels.lab_mushra import MushraPage
from app.panels.lab_preference import PreferencePage
from app.panels.lab_results import LabResults
from app.panels.lab_setup import LabSetup
from app.panels.lab_trial import TrialPage
from app.theme import Colours


class LabPanel(QWidget):
    """Three kinds of pages, one at a time: setting up, trials, results."""

    answered = Signal(object)
    """A :class:`TrialRecord` that was just given."""
    abandoned = Signal()
    shown = Signal()
    """The panel can be seen again."""
    reconnect_wanted = Signal()
    """The audio device went away and is to be looked for again."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self.setup = LabSetup()
        self.results = LabResults(colours)
        self.results.back_wanted.connect(self.show_setup)
        self._waiting = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self.trial: TrialPage | None = None
        """The page of the test that is on."""
        self._device_problem = DeviceProblem()
        self._device_problem.retry_wanted.connect(self.reconnect_wanted)
        self._pages = QStackedWidget()
        for page in (self.setup, self.results, self._waiting):
            self._pages.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.addWidget(self._device_problem)
        layout.addWidget(self._pages, 1)
        self.set_colours(colours)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.results.set_colours(colours)
        self._device_problem.set_colours(colours)
        if self.trial is not None:
            self.trial.set_colours(colours)

    def show_setup(self) -> None:
        """Go to the page on which a test is set up."""
        self._go_to(self.setup)
        self.setup.method.setFocus()

    def show_results(self) -> None:
        """Go to the results."""
        self._go_to(self.results)
        self.results.back_button.setFocus()

    def show_waiting(self, sentence: str) -> None:
        """Say what is being done before a test can begin."""
        self._waiting.setText(sentence)
        self._go_to(self._waiting)

    def begin(self, session: Session, player: Player) -> None:
        """Go through ``session``, heard by ``player``."""
        kind = {AbxSession: AbxPage, MushraSession: MushraPage}.get(type(session), PreferencePage)
        self.trial = kind(session, player, self._colours, self._pages)
        self.trial.answered.connect(self.answered)
        self.trial.abandon_wanted.connect(self.abandoned)
        self.trial.problem_changed.connect(lambda problem: self._device_problem.say(problem, bool(problem)))
        self._pages.addWidget(self.trial)
        self._go_to(self.trial)
        self.trial.setFocus()

    def end(self) -> None:
        """The test is over, carried through or not."""
        if self.trial is not None:
            self.trial.shut_down()
            self._pages.removeWidget(self.trial)
            self.trial.deleteLater()
            self.trial = None
        self._device_problem.say("", False)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def _go_to(self, page: QWidget) -> None:
        self._pages.setCurrentWidget(page)
        self.setFocusProxy(page if isinstance(page, TrialPage) else page.focusProxy())
