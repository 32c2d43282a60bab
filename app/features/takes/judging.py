"""Takes are judged in the background, one after the other, whenever the engine has nothing else to do."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.state.idle_work import IdleWork, Piece
from app.state.jobs import Jobs
from engine.errors import PlainError
from engine.models import catalogue
from engine.session.commands import JudgeTake
from engine.session.events import Event, JobFailed, TakeJudged
from engine.setting.take import Take


class TakeJudging(QObject):
    """Has takes judged. A job that begins cancels the judging, which is done again later: it takes a third of a second
    at most until the job runs."""

    judged = Signal(str, object)
    """A take's id, and what the judges say: figures by name."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work = IdleWork(jobs, self)
        self._work.happened.connect(self._note)

    def add(self, take: Take) -> None:
        """Judge ``take`` once there is time."""
        prompt = prompt_of(take)
        self._work.add(
            Piece(take.id, lambda number: JudgeTake(number, take.id, take.samples, take.sample_rate, prompt))
        )

    def follow(self, event: Event) -> None:
        """Take in what the engine says of the take that it judges."""
        self._work.follow(event)

    def shut_down(self) -> None:
        """Begin nothing more."""
        self._work.clear()

    @Slot(object, object)
    def _note(self, _take: str, event: Event) -> None:
        if isinstance(event, TakeJudged):
            self.judged.emit(event.take, event.figures)
        elif isinstance(event, JobFailed):
            # It would fail with every other take, too.
            self._work.clear()


def prompt_of(take: Take) -> str:
    """File of the recording of a take's voice, or ``""`` for voices that are not among the model's own any more."""
    if take.voice.startswith(catalogue.OWN_VOICE):
        return take.voice.removeprefix(catalogue.OWN_VOICE)
    try:
        return catalogue.voice(take.voice, take.setting.model).audio
    except PlainError:
        return ""
