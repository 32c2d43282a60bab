"""Messages to the user: the message bar above the panels, and the log of everything that happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QMainWindow

from app.shell.banner import Banner
from app.shell.docks import add_bar
from app.state.jobs import Job, Jobs, Kind, Outcome
from engine.session.events import EngineReady, EngineStatus, Event, JobFailed, ModelLoaded


class Level(IntEnum):
    """Severity of a log entry."""

    DETAIL = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


class Notices(QObject):
    """The window's banner, which holds one sentence or question, and what is logged."""

    noted = Signal(Level, str)
    """An entry for the log."""

    def __init__(self, window: QMainWindow, jobs: Jobs) -> None:
        super().__init__(window)
        self._window = window
        self.banner = Banner()
        self._answered: Callable[[str], object] | None = None
        self.banner.dismissed.connect(self._hide)
        self.banner.chosen.connect(self._answer)
        jobs.began.connect(self._job_began)
        jobs.ended.connect(self._job_ended)

    def put_up(self) -> None:
        """Put the banner below the bars that are there."""
        self._window.addToolBarBreak()
        self._bar, self._shown = add_bar(self._window, "message", "Message", self.banner)
        self._bar.hide()

    # --- The banner -------------------------------------------------------------------------------------------------
    @Slot(str)
    def warn(self, sentence: str) -> None:
        """Show a sentence of caution and log it."""
        self.note(sentence, Level.WARNING)
        self.say(sentence)

    def say(self, sentence: str, level: str = "warning") -> None:
        """Show ``sentence``, or hide the banner when it is empty. ``level`` is as in :class:`Banner`."""
        if sentence:
            self._show()
            self.banner.say(sentence, level)
        else:
            self.banner.dismiss()

    def ask(
        self, question: str, choices: Sequence[str], answered: Callable[[str], object], level: str = "warning"
    ) -> None:
        """Show ``question``; ``answered`` is given the one of ``choices`` that the user presses, if any."""
        self._show()
        self._answered = answered
        self.banner.ask(question, choices, level)

    def go_to_message(self) -> None:
        """Put the focus into the banner, when it shows something."""
        if self.banner.isVisible():
            self.banner.focus()

    @Slot(str)
    def _answer(self, choice: str) -> None:
        if self._answered is not None:
            answered, self._answered = self._answered, None
            answered(choice)

    def _show(self) -> None:
        self._shown.setVisible(True)
        self._bar.show()

    @Slot()
    def _hide(self) -> None:
        self._bar.hide()
        self._shown.setVisible(False)

    # --- The log ----------------------------------------------------------------------------------------------------
    def note(self, text: str, level: Level = Level.INFO) -> None:
        """Log ``text`` without showing it."""
        self.noted.emit(level, text)

    @Slot(str)
    def note_qt(self, message: str) -> None:
        """Log a message of Qt itself."""
        self.note(f"Qt: {message}", Level.DETAIL)

    @Slot(str, str)
    def unexpected(self, summary: str, details: str) -> None:
        """Tell of an exception that nothing caught. The application continues."""
        self.note(details, Level.ERROR)
        self.say(
            f"Unexpected error ({summary}). You can continue; copy the log for a bug report.",
            "error",
        )

    def record(self, event: Event) -> None:
        """Log an event of the engine."""
        match event:
            case EngineStatus():
                self.note(event.text, Level.DETAIL)
            case EngineReady():
                self.note(f"The engine is ready: {event.machine}")
            case ModelLoaded():
                self.note(f"Loaded {event.info.title} in {event.seconds:.1f} s on {event.info.device}")
            case JobFailed():
                self.note(event.sentence, Level.ERROR)
                if event.details:
                    self.note(event.details, Level.DETAIL)

    @Slot(object)
    def _job_began(self, job: Job) -> None:
        if job.kind is not Kind.LOAD:
            self.say("")
        self.note(f"{job.kind.value}…")

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        # Why a model could not be loaded is reported by the code that knows which one stays.
        if outcome is Outcome.FAILED and job.kind is not Kind.LOAD:
            self.say(sentence, "error")
        self.note(f"{job.kind.value}: {outcome.value}")
