"""The status bar: what runs, how far it is and how long it will take."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QLabel, QMainWindow, QProgressBar, QWidget

from paretone.session.events import EngineStatus, Event, Progress
from paretone_app.numbers import localised, rough_duration
from paretone_app.state.jobs import Job, Jobs, Outcome
from paretone_app.widgets import build


class StatusLine(QObject):
    """Fills the status bar of ``window`` and follows ``jobs``."""

    def __init__(self, window: QMainWindow, jobs: Jobs) -> None:
        super().__init__(window)
        self._jobs = jobs
        self._status = build.label("Opening…", name="Status")
        self._progress = QProgressBar(minimum=0, maximum=100, format="%p %")
        self._progress.hide()
        self._progress.setAccessibleName("Progress of the running job")
        self._progress.setFixedWidth(window.fontMetrics().height() * 14)
        self._time_left = QLabel()
        self._at_something = False
        """Whether what is shown is what a job is at, and no longer holds once there is progress."""
        self._bar = bar = window.statusBar()
        bar.addWidget(self._status, 1)
        for widget in (self._time_left, self._progress):
            bar.addPermanentWidget(widget)
        jobs.began.connect(self._job_began)
        jobs.ended.connect(self._job_ended)

    @property
    def text(self) -> str:
        """The sentence shown."""
        return self._status.text()

    def add(self, widget: QWidget) -> None:
        """Show ``widget`` at the end of the bar, always."""
        self._bar.addPermanentWidget(widget)

    def say(self, text: str) -> None:
        """Show the current activity."""
        self._status.setText(localised(text))

    @Slot(object)
    def show_progress(self, event: Progress) -> None:
        """Show how far a running job is; that of one that has ended is passed over."""
        job = self._jobs.find(event.job)
        if job is None:
            return
        self._progress.setRange(0, max(1, event.total))
        self._progress.setValue(event.done)
        left = event.seconds_left
        self._time_left.setText("" if left is None else f"about {rough_duration(left, tenths=False)} left")
        if event.text or self._at_something:
            self._at_something = False
            self.say(event.text or f"{job.kind.value}…")

    def follow(self, event: Event) -> None:
        """Show what a running job is at before there is any progress, such as compiling for minutes."""
        job = self._jobs.find(event.job)
        if isinstance(event, EngineStatus) and job is not None:
            self._at_something = True
            self.say(f"{job.kind.value}: {event.text}")

    @Slot(object)
    def _job_began(self, job: Job) -> None:
        self._at_something = False
        self.say(f"{job.kind.value}…")
        self._progress.setRange(0, 0)
        self._time_left.clear()
        self._show_busy()

    @Slot(object, object)
    def _job_ended(self, job: Job, outcome: Outcome) -> None:
        self.say(f"{job.kind.value}: {outcome.value}")
        self._time_left.clear()
        self._show_busy()

    def _show_busy(self) -> None:
        self._progress.setVisible(self._jobs.busy)
