"""Messages to the user: the banner over the panels, and the log of everything that happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QWidget

from app.numbers import fixed, localised
from app.shell.banner import Banner
from app.shell.workspaces import bars_of
from app.state.jobs import Job, Jobs, Kind, Outcome
from app.widgets.screen_readers import announce
from engine.session.events import Caution, EngineReady, EngineStatus, Event, JobFailed, ModelLoaded

_MARGIN = 6
"""Pixels to the left and right of the banner."""


class Level(IntEnum):
    """Severity of a log entry."""

    DETAIL = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True)
class _Message:
    """A sentence of the banner, or a question with its choices."""

    sentence: str
    level: str
    choices: tuple[str, ...] = ()
    answered: Callable[[str], object] | None = None
    stays: bool = False
    """Whether it stays until the user dismisses or answers it."""


class Notices(QObject):
    """The window's banner, which holds one sentence or question, and what is logged."""

    noted = Signal(Level, str)
    """An entry for the log."""

    def __init__(self, window: QMainWindow, jobs: Jobs, cancel: QWidget) -> None:
        """``cancel``: the button at the right end of the bars, which stays in sight."""
        super().__init__(window)
        self._window, self._jobs, self._cancel = window, jobs, cancel
        self.banner = Banner(window)
        self.banner.hide()
        self._message: _Message | None = None
        """The one shown."""
        self._cautioned: set[str] = set()
        self._covered: list[_Message] = []
        """Those that were covered and come back, the last of them first."""
        self._answered: Callable[[str], object] | None = None
        self.banner.dismissed.connect(self._show_covered)
        self.banner.chosen.connect(self._answer)
        jobs.began.connect(self._job_began)
        jobs.ended.connect(self._job_ended)

    def place(self) -> None:
        """Put the banner over the last line of the bars, so that nothing moves when it comes and goes."""
        above = bars_of(self._window, Qt.ToolBarArea.TopToolBarArea)
        below = max((bar.geometry().bottom() + 1 for bar in above if bar.isVisible()), default=0)
        right = self._window.width()
        if self._cancel.isVisible():
            right = min(right, self._cancel.mapTo(self._window, QPoint()).x())
        self.banner.setFixedWidth(max(0, right - 2 * _MARGIN))
        self.banner.move(_MARGIN, max(0, below - self.banner.line_height + _MARGIN))
        self.banner.raise_()

    # --- The banner -------------------------------------------------------------------------------------------------
    @Slot(str)
    def warn(self, sentence: str) -> None:
        """Show a sentence of caution and log it."""
        self.note(sentence, Level.WARNING)
        self.say(sentence)

    def say(self, sentence: str, level: str = "warning", at_risk: bool = False) -> None:
        """Show ``sentence``; if it is empty, hide the banner unless the user has to see it. ``level`` is as in
        :class:`Banner`; ``at_risk``: data may be lost, so that the sentence stays until it is dismissed."""
        if sentence:
            self._put(_Message(sentence, level, stays=at_risk))
        elif self._message is not None and not self._message.stays:
            self.banner.dismiss()

    @property
    def waits(self) -> bool:
        """Whether a message is shown that stays until the user has seen to it."""
        return self._message is not None and self._message.stays

    def clear(self) -> None:
        """Hide the banner, whatever it says."""
        self._covered.clear()
        self.banner.dismiss()

    def ask(
        self, question: str, choices: Sequence[str], answered: Callable[[str], object], level: str = "warning"
    ) -> None:
        """Show ``question``; ``answered`` is given the one of ``choices`` that the user presses, if any."""
        self._put(_Message(question, level, tuple(choices), answered, True))

    def go_to_message(self) -> None:
        """Put the focus into the banner, when it shows something."""
        if self.banner.isVisible():
            self.banner.focus()

    @Slot(str)
    def _answer(self, choice: str) -> None:
        if self._answered is not None:
            answered, self._answered = self._answered, None
            answered(choice)

    def _put(self, message: _Message) -> None:
        message = replace(message, sentence=localised(message.sentence))
        if self._message is not None and self._message.stays and self._message != message:
            self._covered.append(self._message)
        self._message = message
        self.place()
        if message.choices:
            self.banner.ask(message.sentence, message.choices, message.level)
        else:
            self.banner.say(message.sentence, message.level)
        announce(self.banner, message.sentence)
        self.place()

    @Slot()
    def _show_covered(self) -> None:
        """The message was dismissed, or answered: then :meth:`_answer` follows."""
        self._answered = self._message.answered if self._message is not None else None
        self._message = None
        if self._covered:
            self._put(self._covered.pop())

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
            case Caution():
                self._caution(event.sentence)
            case EngineReady():
                self.note(f"The engine is ready: {event.machine}")
            case ModelLoaded():
                self.note(f"Loaded {event.info.title} in {fixed(event.seconds, 1)} s on {event.info.device}")
            case JobFailed():
                self.note(event.sentence, Level.ERROR)
                if event.details:
                    self.note(event.details, Level.DETAIL)

    def _caution(self, sentence: str) -> None:
        """Show what is to be known of a voice, once: every take in that voice says it."""
        if sentence in self._cautioned:
            self.note(sentence, Level.WARNING)
            return
        self._cautioned.add(sentence)
        self.warn(sentence)

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
        elif not self._jobs.held:
            # During a listening test nothing is said of what else happens.
            announce(self._window, f"{job.kind.value}: {outcome.value}")
        self.note(f"{job.kind.value}: {outcome.value}")
