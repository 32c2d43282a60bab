"""The queue of jobs: what runs, what waits, and work for idle times."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from paretone.errors import PlainError, SettingError
from paretone.session.commands import Cancel, Command, Hold, LoadModel, PauseStudy, Release
from paretone.session.events import ENDINGS, EngineHeld, Event, JobCancelled, JobFailed, JobFinished, StudyEnded
from paretone.setting.setting import Setting


class Kind(Enum):
    LOAD = "Loading the model"
    DOWNLOAD = "Downloading"
    INSTALL = "Installing packages"
    BASELINE = "Synthesising the baseline"
    ACCELERATED = "Synthesising with techniques"
    CALIBRATE = "Calibrating"
    ATTENTION = "Capturing attention"
    VIEW = "Computing the view"
    TRANSFER = "Measuring the transfer"
    TRAIN = "Training"
    LAYERS = "Measuring the layers"
    ROOFLINE = "Measuring the roofline"
    STUDY = "Running the study"
    VERIFY = "Verifying the study"
    PARTIAL = "Decoding the canvas"
    EXPORT = "Exporting"
    GRID = "Searching a grid"
    GROUPS = "Finding token groups"
    TOKENS = "Decoding tokens"
    MAKE = "Making takes"
    REPEAT = "Timing takes again"
    SERVER = "Measuring a server"


class Outcome(Enum):
    FINISHED = "finished"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Job:
    """A job of the queue. Its command is made when it is asked for, so later choices do not change it."""

    number: int
    kind: Kind
    command: Command = field(compare=False)
    model: LoadModel | None = field(default=None, compare=False)
    """What loads the model that it needs; ``None``: no particular one, or its own."""
    after: int = field(default=0, compare=False)
    """Number of the job whose result it needs; 0: none."""
    serves: int = field(default=0, compare=False)
    """For a load: number of the job that needs the model; 0: the user chose it."""
    at_once: bool = field(default=False, compare=False)
    """Whether it began when it was asked for."""
    asked: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"), compare=False)

    @property
    def title(self) -> str:
        """What a take says, or what another job does."""
        text, file = (str(getattr(self.command, name, "")) for name in ("text", "file"))
        named = Path(file).stem if file else getattr(getattr(self.command, "order", None), "title", "")
        return f"“{text}”" if text else f"{self.kind.value}: {named}" if named else self.kind.value

    @property
    def group(self) -> LoadModel | None:
        """Jobs of the same group use the same model."""
        return replace(self.command, job=0) if isinstance(self.command, LoadModel) else self.model


class Jobs(QObject):
    """Numbers jobs, submits them one at a time, loads the models that they need, and follows each to its end."""

    began = Signal(object)
    ended = Signal(object, object, str)
    """A :class:`Job`, its :class:`Outcome`, and the reason for a failure as a sentence, or ``""``."""
    changed = Signal()
    """Other jobs run or wait, their order changed, or the queue was paused or resumed."""
    closing = Signal()
    paused = Signal()
    """Background work is paused, as requested by :meth:`hold`."""

    def __init__(self, submit: Callable[[Command], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._submit = submit
        self._last = 0
        self._running: dict[int, Job] = {}
        self._line: list[Job] = []
        self.left: tuple[Job, ...] = ()
        """Jobs of the last session, which wait for :meth:`go_on`."""
        self.held = False
        """Whether a listening test holds the engine."""
        self.stopped = False
        """Whether the user paused the queue."""
        self._rests = False
        self._pausing = False
        self.closed = False
        self.loaded: LoadModel | None = None
        """What loaded the engine's model."""
        self.loader: Callable[[str], LoadModel | None] = lambda model: None
        """What loads a model (by id) with the current choices."""
        self.complete: Callable[[Job], Command] = lambda job: job.command
        """The command with what the job :attr:`Job.after` prepared. May raise :class:`PlainError`."""

    @property
    def running(self) -> tuple[Job, ...]:
        """The job under way, if any."""
        return tuple(self._running.values())

    @property
    def waiting(self) -> tuple[Job, ...]:
        return tuple(self._line)

    @property
    def all(self) -> tuple[Job, ...]:
        return (*self._running.values(), *self._line)

    @property
    def busy(self) -> bool:
        return bool(self._running or self._line)

    def why_one(self, kind: Kind, sentence: str) -> str:
        """``sentence`` while a job of this kind runs or waits, of which one at a time makes sense, or ``""``."""
        return sentence if any(job.kind is kind for job in self.all) else ""

    def find(self, number: int) -> Job | None:
        """The job under way with this number."""
        return self._running.get(number)

    def start(self, kind: Kind, command: Callable[[int], Command], after: int = 0) -> Job:
        """Queue ``command(number)``; it begins at once if nothing else runs or waits."""
        job = self._add(kind, command, after)
        self._next()
        return job

    def again(self, job: Job, command: Command) -> Job:
        """Queue the cancelled ``job`` again, as ``command``. Raises :class:`PlainError` without what it needs."""
        waits = any(one.number == job.after for one in self.all)
        command = command if waits or not job.after else self.complete(job)
        return self.start(job.kind, lambda number: replace(command, job=number), job.after if waits else 0)

    def start_all(self, kind: Kind, commands: Iterable[Callable[[int], Command]], after: int = 0) -> None:
        """As :meth:`start`, announced once."""
        for one in commands:
            self._add(kind, one, after)
        self._next()

    def _add(self, kind: Kind, command: Callable[[int], Command], after: int) -> Job:
        self._last += 1
        made = command(self._last)
        setting = getattr(made, "setting", None) or getattr(getattr(made, "request", None), "setting", None)
        model = self.loader(setting.model) if isinstance(setting, Setting) else None
        at_once = not self.busy and not self.stopped
        job = Job(self._last, kind, made, model, after, at_once=at_once)
        self._line.insert(self._place(job), job)
        return job

    def _place(self, job: Job) -> int:
        """Where a new job waits: next to those of its model, so that models are loaded once. It passes jobs of other
        models only, never those whose results it may need."""
        place = len(self._line)
        while place and None not in (job.group, self._line[place - 1].group):
            if self._line[place - 1].group == job.group:
                return place
            place -= 1
        loaded = next((one.group for one in self.running if one.group is not None), self.loaded)
        return place if not place and loaded == job.group else len(self._line)

    def restore(self, jobs: Iterable[Job]) -> None:
        """Let ``jobs`` of the last session wait for :meth:`go_on`; they are numbered anew."""
        numbers = {0: 0}
        for job in jobs:
            self._last += 1
            numbers[job.number] = self._last
            command = replace(job.command, job=self._last)
            again = replace(job, number=self._last, command=command, after=numbers.get(job.after, 0))
            self.left = (*self.left, again)
        self.changed.emit()

    def replace_left(self, same: Callable[[Job], bool]) -> None:
        """Forget those jobs of the last session that are the ``same`` as one that the user starts now."""
        self.left = tuple(one for one in self.left if not same(one))

    def go_on(self) -> None:
        """Continue with the jobs of the last session, after those that wait."""
        left, self.left = self.left, ()
        for job in left:
            self._line.insert(self._place(job), job)
        self.stop(False)

    def move(self, job: Job, place: int) -> None:
        """Let the waiting ``job`` be the one at ``place`` of :attr:`waiting`, as near as its dependencies permit."""
        rest = [one for one in self._line if one != job]
        first = next((index + 1 for index, one in enumerate(rest) if one.number == job.after), 0)
        last = next((index for index, one in enumerate(rest) if one.after == job.number), len(rest))
        rest.insert(min(max(place, first), last), job)
        if job in self._line and rest != self._line:
            self._line = rest
            self.changed.emit()

    def in_background(self, command: Callable[[int], Command]) -> int:
        """Submit ``command(number)`` as silent work, not as a job; returns the number."""
        self._last += 1
        self._submit(command(self._last))
        return self._last

    def cancel_background(self, number: int) -> None:
        self._submit(Cancel(0, number))

    def hold(self) -> None:
        """Suspend all computation until :meth:`release`: running jobs pause, new ones wait. A take under way is
        finished first; then :attr:`paused` is emitted."""
        self._rest(True, self.stopped)

    def release(self) -> None:
        self._rest(False, self.stopped)

    def stop(self, on: bool) -> None:
        """Pause the queue, the running job included, or go on."""
        self._rest(self.held, on)
        self._next()

    def _rest(self, held: bool, stopped: bool) -> None:
        before, asked = self.held or self.stopped, held and not self.held
        self.held, self.stopped = held, stopped
        if (held or stopped) != before:
            self._rests = False
            self._submit(Release(0) if before else Hold(0))
        elif asked and self._rests:
            QTimer.singleShot(0, self, self.paused.emit)

    def close(self) -> None:
        """Begin and forget no more jobs: the window is closing."""
        self.closing.emit()
        self.closed = True

    def cancel(self, job: Job) -> None:
        if job in self._line or job in self.left:
            self._line = [one for one in self._line if one != job]
            self.left = tuple(one for one in self.left if one != job)
            for one in [one for one in self.left if one.after == job.number]:
                self.cancel(one)
            self._end(job, Outcome.CANCELLED)
            self.changed.emit()
        elif job.number in self._running:
            self._submit(Cancel(0, job.number))

    def pause(self, job: Job) -> None:
        """Let the study of ``job`` finish the takes under way and then pause."""
        self._submit(PauseStudy(0, job.number))

    def handle(self, event: Event) -> None:
        """Process the end of a job, or the pause; ignore other events."""
        if isinstance(event, EngineHeld):
            self._rests = True
            if self.held:
                self.paused.emit()
        if isinstance(event, StudyEnded):
            self._pausing = event.paused
        job = self._running.get(event.job)
        outcomes = {JobFinished: Outcome.FINISHED, JobFailed: Outcome.FAILED, JobCancelled: Outcome.CANCELLED}
        outcome = outcomes.get(type(event))
        if outcome is not None and job is not None:
            del self._running[event.job]
            if job.kind is Kind.STUDY and outcome is Outcome.FINISHED and self._pausing:
                outcome = Outcome.PAUSED
            self._end(job, outcome, event.sentence if isinstance(event, JobFailed) else "")
            self._next()

    def _end(self, job: Job, outcome: Outcome, sentence: str = "") -> None:
        """Announce the end, and that of the waiting jobs that are impossible without its result."""
        impossible: list[tuple[Job, Outcome, str]] = []
        for one in [] if self.closed else [one for one in self._line if one.after == job.number]:
            try:
                if outcome is not Outcome.FINISHED:
                    raise SettingError(f"{job.kind.value}: {outcome.value}. Ask for it again, then for what needs it.")
                self._line[self._line.index(one)] = replace(one, command=self.complete(one), after=0)
            except PlainError as error:
                impossible.append((one, Outcome.FAILED, f"{one.kind.value} needs what was not made. {error}"))
        without_model = isinstance(job.command, LoadModel) and job.group != self.loaded and not self.closed
        if without_model and (job.serves or outcome is Outcome.FAILED):
            impossible += [(one, outcome, sentence) for one in self._line if one.model == job.group]
        # Now: whoever hears of the end may begin the next job.
        self._line = [one for one in self._line if all(one != other for other, *_ in impossible)]
        self.ended.emit(job, outcome, sentence)
        for end in impossible:
            self._end(*end)

    def _next(self) -> None:
        """Begin the next job, after loading its model if the engine has another one; announce the change."""
        if self._line and not (self._running or self.stopped or self.closed):
            job = self._line[0]
            if job.model is not None and job.model != self.loaded:
                self._last += 1
                job = Job(self._last, Kind.LOAD, replace(job.model, job=self._last), serves=job.number)
            else:
                del self._line[0]
            self._running[job.number] = job
            self._submit(job.command)
            self.began.emit(job)
        self.changed.emit()


IDLE_MILLISECONDS = 1000
"""Idle time of the engine before a piece starts, so that jobs in quick succession never wait."""


@dataclass(frozen=True)
class Piece:
    what: object
    command: Callable[[int], Command]


class IdleWork(QObject):
    """Queue of work for idle times. A new job cancels the current piece, which is repeated later."""

    happened = Signal(object, object)
    """Subject of a piece, and an event from it."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: deque[Piece] = deque()
        self._running: tuple[int, Piece] | None = None
        """Number of the command, and its piece."""
        self._unwanted = False
        """Whether the current piece is no longer wanted."""
        self.timer = QTimer(self, singleShot=True, interval=IDLE_MILLISECONDS)
        self.timer.timeout.connect(self._next)
        jobs.began.connect(self._make_way)
        jobs.ended.connect(self._wait)

    @property
    def busy(self) -> bool:
        return self._running is not None or bool(self._waiting)

    def add(self, piece: Piece) -> None:
        self._waiting.append(piece)
        self._wait()

    def replace(self, pieces: Iterable[Piece]) -> None:
        """Replace the queue; cancel the current piece unless it is among ``pieces``."""
        wanted = {one.what: one for one in pieces}
        if self._running is not None:
            self._unwanted = self._running[1].what not in wanted
            wanted.pop(self._running[1].what, None)
            if self._unwanted:
                self._jobs.cancel_background(self._running[0])
        self._waiting = deque(wanted.values())
        self._wait()

    def clear(self) -> None:
        self._waiting.clear()
        self._unwanted = self._running is not None
        self.timer.stop()

    def follow(self, event: Event) -> None:
        if self._running is None or event.job != self._running[0]:
            return
        piece = self._running[1]
        if isinstance(event, ENDINGS):
            self._running = None
            if isinstance(event, JobCancelled) and not self._unwanted:
                self._waiting.appendleft(piece)
            self._unwanted = False
        self.happened.emit(piece.what, event)
        self._wait()

    def _wait(self, *ended: object) -> None:
        if self._waiting and self._running is None:
            self.timer.start()

    def _make_way(self, job: Job) -> None:
        self.timer.stop()
        if self._running is not None:
            self._jobs.cancel_background(self._running[0])

    def _next(self) -> None:
        if self._jobs.held or self._jobs.stopped:
            self.timer.start()
        elif self._waiting and self._running is None and not self._jobs.busy:
            piece = self._waiting.popleft()
            self._running = self._jobs.in_background(piece.command), piece
