"""Messages to the user, their history, and the log."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QMainWindow

from paretone.session.events import Caution, EngineReady, EngineStatus, Event, JobFailed, ModelLoaded
from paretone_app.numbers import fixed, localised
from paretone_app.shell.banner import WARNING, Banner, Message
from paretone_app.shell.theme import NEAR, WIDE
from paretone_app.shell.workspaces import Workspaces
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome
from paretone_app.widgets.screen_readers import announce

_REMEMBERED = 500


class Level(IntEnum):
    DETAIL = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True)
class Said:
    when: datetime
    level: str
    sentence: str


class Notices(QObject):
    noted = Signal(Level, str)
    history_changed = Signal()
    """A message was added or missed, or the history was viewed."""

    def __init__(self, window: QMainWindow, jobs: Jobs, workspaces: Workspaces) -> None:
        super().__init__(window)
        self._window, self._jobs, self._workspaces = window, jobs, workspaces
        self.banner = Banner(window)
        self.history: deque[Said] = deque(maxlen=_REMEMBERED)
        self.missed = 0
        """Messages that expired since the history was last viewed."""
        self.cautioned: set[str] = set()
        self.banner.expired.connect(self._miss)
        window.centralWidget().installEventFilter(self)
        workspaces.changed.connect(self.place)
        workspaces.moved.connect(self.place)
        jobs.began.connect(self._job_began)
        jobs.ended.connect(self._job_ended)

    def place(self) -> None:
        """Put the messages at the lower right, clear of fresh measurements and of the buttons on the last line."""
        room, buttons = self._workspaces.room_for_messages(), 2 * self._window.fontMetrics().height()
        self.banner.place(room.adjusted(WIDE, WIDE, -WIDE, -NEAR - buttons))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self.place()
        return False

    def warn(self, sentence: str) -> None:
        self.note(sentence, Level.WARNING)
        self.say(sentence)

    def say(self, sentence: str, level: str = WARNING, at_risk: bool = False) -> None:
        """Show ``sentence``; an empty one removes the passing messages. ``level``: ``info`` and ``warning`` expire,
        ``error`` stays until dismissed; ``at_risk``: data may be lost, so the message stays too."""
        if sentence:
            self._put(Message(sentence, level, at_risk=at_risk))
        else:
            self.banner.pass_by()

    def ask(
        self, question: str, choices: Sequence[str], answered: Callable[[str], object], level: str = WARNING
    ) -> Message:
        """Show ``question``; ``answered`` receives the choice that the user presses."""
        return self._put(Message(question, level, tuple(choices), answered))

    def look_back(self) -> None:
        self.missed = 0
        self.history_changed.emit()

    def _miss(self) -> None:
        self.missed += 1
        self.history_changed.emit()

    def _put(self, message: Message) -> Message:
        message = replace(message, sentence=localised(message.sentence))
        self.history.append(Said(datetime.now(), message.level, message.sentence))
        self.place()
        self.banner.show_message(message)
        announce(self.banner, message.sentence)
        self.history_changed.emit()
        return message

    def note(self, text: str, level: Level = Level.INFO) -> None:
        self.noted.emit(level, text)

    def note_qt(self, message: str) -> None:
        self.note(f"Qt: {message}", Level.DETAIL)

    def unexpected(self, summary: str, details: str) -> None:
        """Report an exception that nothing caught. The application continues."""
        self.note(details, Level.ERROR)
        self.say(f"Unexpected error ({summary}). You can continue; copy the log for a bug report.", "error")

    def record(self, event: Event) -> None:
        match event:
            case EngineStatus():
                self.note(event.text, Level.DETAIL)
            case Caution() if event.sentence in self.cautioned:
                self.note(event.sentence, Level.WARNING)
            case Caution():
                # Shown once, although every take in a voice or setting repeats it.
                self.cautioned.add(event.sentence)
                self.warn(event.sentence)
            case EngineReady():
                self.note(f"The engine is ready: {event.machine}")
            case ModelLoaded():
                self.note(f"Loaded {event.info.title} in {fixed(event.seconds, 1)} s on {event.info.device}")
            case JobFailed():
                self.note(event.sentence, Level.ERROR)
                if event.details:
                    self.note(event.details, Level.DETAIL)

    def _job_began(self, job: Job) -> None:
        if job.kind is not Kind.LOAD:
            self.say("")
        self.note(f"{job.kind.value}…")

    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        # Failed loads are reported by the code that knows which model stays.
        if outcome is Outcome.FAILED and job.kind is not Kind.LOAD:
            self.say(sentence, "error")
        elif not self._jobs.held:
            # During a listening test, announce no other events.
            announce(self._window, f"{job.kind.value}: {outcome.value}")
        self.note(f"{job.kind.value}: {outcome.value}")
