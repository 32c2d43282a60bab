"""Takes are judged in the background, one after the other, whenever the engine has nothing else to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal, Slot

from paretone.errors import PlainError
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.own_voices import is_own
from paretone.session.commands import JudgeTake
from paretone.session.events import Event, JobFailed, TakeJudged
from paretone.setting.take import Take
from paretone_app.state.jobs import IdleWork, Jobs, Piece


class TakeJudging(QObject):
    """Has takes judged. A job that begins cancels the judging, which is done again later: it takes a third of a second
    at most until the job runs."""

    judged = Signal(str, object)
    """A take's id, and what the judges say: figures by name."""

    def __init__(
        self, jobs: Jobs, voices: Callable[[], Iterable[Voice]] = tuple, parent: QObject | None = None
    ) -> None:
        """``voices`` are those that can be spoken in, the user's own included."""
        super().__init__(parent)
        self._voices = voices
        self._work = IdleWork(jobs, self)
        self._work.happened.connect(self._note)

    @property
    def busy(self) -> bool:
        """Whether a take is being judged or waits for it."""
        return self._work.busy

    def add(self, take: Take) -> None:
        """Judge ``take`` once there is time."""
        prompt = prompt_of(take, self._voices())
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


def prompt_of(take: Take, voices: Iterable[Voice] = ()) -> str:
    """File of the recording of a take's voice, or ``""`` for one that is neither the model's own any more nor among the
    user's ``voices``."""
    if is_own(take.voice):
        return next((one.audio for one in voices if one.id == take.voice), "")
    try:
        return catalogue.voice(take.voice, take.setting.model).audio
    except PlainError:
        return ""
