"""Takes that are wanted, but that nobody listens to while they are made: asked for, or ahead of time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.session.commands import MakeTake
from paretone.session.events import Event, JobFailed, TakeMade
from paretone.setting.setting import Artefact, Setting
from paretone_app.state.differences import model_title, other_weights, technique_text
from paretone_app.state.jobs import IdleWork, Job, Jobs, Kind, Outcome, Piece
from paretone_app.state.selection import Selection


@dataclass(frozen=True)
class Wanted:
    """A take to make, with the artefacts that its setting names; one that it lacks is prepared."""

    text: str
    voice: Voice
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()

    def command(self, number: int) -> MakeTake:
        """For the engine."""
        label = technique_text(self.setting)
        return MakeTake(number, self.text, self.voice, self.setting, self.artefacts, label)


def why_not_loaded(model: str) -> str:
    """What to do to have ``model`` loaded, as a sentence."""
    known = any(one.id == model for one in catalogue.MODELS)
    return "Load that model first (menu Model)." if known else "That model is not there any more."


def wanted_take(
    selection: Selection,
    text: str,
    voice: str,
    setting: Setting,
    artefacts: tuple[Artefact, ...] = (),
    checkpoint: str = "",
) -> Wanted:
    """The take of ``text`` in the voice with the id ``voice`` under ``setting``, with the weights ``checkpoint`` if
    given. Raises :class:`SettingError` if the loaded model cannot make it."""
    info = selection.info if selection.ready else None
    if info is None or info.id != setting.model:
        raise SettingError(f"It is of {model_title(setting.model)}. {why_not_loaded(setting.model)}")
    if others := other_weights(checkpoint, info.all_weights):
        raise SettingError(f"What it belongs to {others}; load {info.title} from the folder of those.")
    found = next((one for one in selection.voices if one.id == voice), None)
    if found is None:
        raise SettingError(f"{info.title} has no voice “{voice.rpartition('/')[2]}”, so it cannot be made.")
    return Wanted(text, found, setting, artefacts)


class Making(QObject):
    """Has takes made one after the other: those :meth:`ask` wants as jobs that the user sees and can cancel, those
    :meth:`ahead` wants only while the engine has nothing else to do."""

    take_made = Signal(object)
    """A finished :class:`paretone.setting.take.Take`."""
    changed = Signal()
    """Another take is under way, more or fewer wait, or one could not be made."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: deque[Wanted] = deque()
        self._running: tuple[int, Wanted] | None = None
        self._idle = IdleWork(jobs, self)
        self._idle.happened.connect(self._note)
        self.problems: dict[Wanted, str] = {}
        """Why takes could not be made, as sentences."""
        self.artefacts: dict[str, Artefact] = {}
        """Those that were prepared for takes, by their fingerprints."""
        jobs.ended.connect(self._job_ended)
        jobs.cancelling.connect(self._give_up_rest)

    @property
    def waiting(self) -> tuple[Wanted, ...]:
        """What was asked for and is not made yet, that under way first."""
        return (*(() if self._running is None else (self._running[1],)), *self._waiting)

    def ask(self, wanted: Sequence[Wanted]) -> None:
        """Make these next, after those that were asked for before. Cancelling one gives all of them up."""
        there = set(self.waiting)
        self._waiting.extend(one for one in dict.fromkeys(wanted) if one not in there)
        for one in wanted:
            self.problems.pop(one, None)
        self.changed.emit()
        self._begin()

    def ahead(self, wanted: Sequence[Wanted]) -> None:
        """Make these, in this order, when there is time, and no others ahead of time any more."""
        self._idle.replace([Piece(one, one.command) for one in wanted if one not in self.problems])

    @Slot()
    def try_again(self) -> None:
        """Forget what could not be made: another model is loaded, or was loaded again."""
        self.problems.clear()
        self.changed.emit()

    @Slot()
    def _give_up_rest(self) -> None:
        """Make nothing more of what was asked for than the take under way."""
        self._waiting.clear()
        self.changed.emit()

    def follow(self, event: Event) -> None:
        """Take in a finished take."""
        self._idle.follow(event)
        if isinstance(event, TakeMade) and self._running is not None and event.job == self._running[0]:
            self._keep(event)

    def _keep(self, event: TakeMade) -> None:
        self.artefacts.update((one.fingerprint, one) for one in event.artefacts)
        self.take_made.emit(event.take)

    @Slot(object, object)
    def _note(self, wanted: Wanted, event: Event) -> None:
        if isinstance(event, TakeMade):
            self._keep(event)
        elif isinstance(event, JobFailed):
            self.problems[wanted] = event.sentence
            self.changed.emit()

    @Slot()
    def _begin(self) -> None:
        if self._waiting and self._running is None and not self._jobs.busy:
            wanted = self._waiting.popleft()
            self._running = self._jobs.start(Kind.MAKE, wanted.command).number, wanted
            self.changed.emit()

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if self._running is not None and job.number == self._running[0]:
            wanted, self._running = self._running[1], None
            if outcome is Outcome.CANCELLED:
                self._waiting.clear()
            elif outcome is Outcome.FAILED:
                self.problems[wanted] = sentence
            self.changed.emit()
        # Others who are told that the job has ended may start one that is more urgent.
        QTimer.singleShot(0, self, self._begin)
