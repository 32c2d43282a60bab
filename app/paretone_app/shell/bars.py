"""The bars around the workspaces: header, rail of workspaces, status line."""

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QLabel, QMainWindow, QProgressBar, QSizePolicy, QToolButton, QWidget

from paretone.models import catalogue
from paretone.session.commands import Synthesise
from paretone.session.events import EngineStatus, Event, Progress, Telemetry
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone_app.numbers import counted, fixed, localised, rough_duration, significant
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import Workspace
from paretone_app.shell.theme import GAP, NEAR, TIGHT, icon, palette
from paretone_app.state.app_state import AppState
from paretone_app.state.differences import label_of, technique_text
from paretone_app.state.jobs import Job, Jobs, Outcome
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import GROUP

_RTF = "Real-time factor: seconds of computing per second of speech; below 1 is faster than real time"


class _Part(build.Yielding):
    """Part of the header: elided if it lacks room."""

    def __init__(self, look: str) -> None:
        super().__init__()
        self.setProperty("look", look)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 2, super().minimumSizeHint().height())


class Header(QWidget):
    """Model, voice, setting, device and real-time factor, from the selection and the last synthesis."""

    screen_role = GROUP

    def __init__(self, state: AppState, cancel: QAction, queue: QAction) -> None:
        super().__init__()
        self._state = state
        self._measured: tuple[float, Setting, str] | None = None
        """Real-time factor, setting and name of the last take."""
        self._estimate: tuple[float, Setting] | None = None
        self.setAccessibleName("What speaks")
        self.model, self.voice, self.setting = _Part("title"), _Part("muted"), _Part("muted")
        self.device = build.label("starting", "chip", name="Device: unknown")
        self.factor = build.label("RTF –", "title", tip=_RTF)
        self.cancel, self.queue = QToolButton(), QToolButton()
        for button in (self.cancel, self.queue):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setProperty("look", "step")
        self.cancel.setDefaultAction(cancel)
        self.cancel.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.cancel.setAccessibleName("Cancel")
        self.queue.clicked.connect(queue.trigger)
        self._queue_keys = queue.shortcut().toString()
        self._show_queue()
        parts = (self.model, self.voice, self.setting, 1, self.factor, self.device, self.queue, self.cancel)
        build.fill(HBoxLayout(self), parts, (NEAR, 0, NEAR, 0)).setSpacing(GAP)
        state.synthesis.take_added.connect(self._show_take)
        state.synthesis.remeasured.connect(self._show_take)
        state.jobs.ended.connect(self._job_ended)
        state.jobs.changed.connect(self._show_queue)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        build.hold_width(self.queue, "Queue 00")

    def _show_queue(self) -> None:
        jobs = self._state.jobs
        waiting = len(jobs.waiting) + len(jobs.left)
        paused = ", paused" if jobs.stopped else ""
        self.queue.setText(f"Queue {waiting}" if waiting else "Queue")
        self.queue.setAccessibleName(f"Queue: {counted(waiting, 'job waits', 'jobs wait')}{paused}")
        self.queue.setToolTip(f"{self.queue.accessibleName()} ({self._queue_keys})")

    def refresh(self) -> None:
        chosen, device = self._state.selection, self._state.loading.device_title
        title = chosen.entry.title
        if chosen.candidate:
            title = f"{catalogue.entry(chosen.candidate).title} (not loaded)"
        elif not chosen.ready:
            title = f"{title} (loading)" if self._state.jobs.busy else f"{title} (not loaded)"
        voice = chosen.voice.title if chosen.voice is not None else "no voice"
        setting = technique_text(chosen.setting)
        for label, name, text in (
            (self.model, "Model", title),
            (self.voice, "Voice", voice),
            (self.setting, "Setting", setting[:1].upper() + setting[1:]),
        ):
            label.setText(text)
            label.setAccessibleName(f"{name}: {text}")
            label.setToolTip(f"{name}: {text}")
        machine = self._state.machine
        tip = f"The model runs on {device}.\n{machine.title}"
        if machine.host:
            trip = "" if machine.round_trip is None else f"{fixed(1000 * machine.round_trip, 0)} ms"
            device = " · ".join(filter(None, (machine.host, device if machine.connected else "no line", trip)))
            tip = f"{tip}\nOn {machine.host}. Times are measured there; audio arrives one round trip ({trip}) later."
        self.device.setText(device)
        self.device.setAccessibleName(f"Device: {device}")
        self.device.setToolTip(tip)
        self._show_factor()

    def show_figures(self, on: bool) -> None:
        """Show or hide the real-time factor, which could bias a listener."""
        self.factor.setVisible(on)

    def show_telemetry(self, event: Telemetry) -> None:
        job = self._state.jobs.find(event.job)
        if event.real_time_factor is not None and job is not None and isinstance(job.command, Synthesise):
            self._estimate = event.real_time_factor, job.command.setting
            self._show_factor()

    def _show_take(self, take: Take) -> None:
        if take.unfinished:
            return  # Partial take, partial time.
        self._measured = take.measurements.real_time_factor, take.setting, label_of(take) or "last take"
        self._estimate = None
        self._show_factor()

    def _job_ended(self, job: Job) -> None:
        if isinstance(job.command, Synthesise):
            self._estimate = None
            self._show_factor()

    def _show_factor(self) -> None:
        """Show the last real-time factor if it belongs to the shown model, and say if it belongs to another setting."""
        chosen = self._state.selection
        shown = (*self._estimate, "running estimate") if self._estimate is not None else self._measured
        if shown is None or chosen.candidate or shown[1].model != chosen.model_id:
            self.factor.setText("RTF –")
            self.factor.setToolTip(_RTF)
            self.factor.setAccessibleName("RTF: nothing measured yet")
            return
        factor, setting, what = shown
        made, of = replace(setting, seed=0), " (earlier setting)"
        if made == replace(chosen.setting, seed=0):
            of = ""
        elif made == replace(chosen.baseline_setting, seed=0):
            of = " (baseline)"
        self.factor.setText(f"RTF {significant(factor)}{of}")
        self.factor.setToolTip(f"{_RTF}\n{what[:1].upper() + what[1:]}")
        self.factor.setAccessibleName(f"{self.factor.text()}, {what}")


class Rail(QWidget):
    screen_role = GROUP

    def __init__(self, actions: Mapping[Workspace, QAction], colours: Colours) -> None:
        super().__init__()
        self.setAccessibleName("Workspaces")
        self.buttons: dict[Workspace, QToolButton] = {}
        layout = VBoxLayout(self)
        layout.setContentsMargins(0, TIGHT, 0, TIGHT)
        layout.setSpacing(TIGHT)
        em = self.fontMetrics().height()
        for workspace, action in actions.items():
            # Not the button's default action: tip and icon of the action are for the menu.
            size = QSize(round(1.4 * em), round(1.4 * em))
            button = build.tile(workspace.title, f"Workspace {workspace.title}", "workspace", size)
            button.clicked.connect(action.trigger)
            keys = action.shortcut().toString()
            button.setAccessibleDescription(f"{workspace.tip} ({keys})")
            button.setToolTip(f"{workspace.title}: {workspace.tip} ({keys})")
            self.buttons[workspace] = button
            layout.addWidget(button)
        layout.addStretch(1)
        self.set_colours(colours)

    def show_current(self, current: Workspace) -> None:
        for workspace, button in self.buttons.items():
            button.setChecked(workspace is current)

    def set_colours(self, colours: Colours) -> None:
        for workspace, button in self.buttons.items():
            button.setIcon(icon(workspace.icon, palette(colours)))


class StatusLine(QObject):
    def __init__(self, window: QMainWindow, jobs: Jobs) -> None:
        super().__init__(window)
        self._jobs = jobs
        self._status = build.label("Opening…", name="Status", yielding=True)
        # Below the header's text; the bar's own margin is the rest.
        self._status.setContentsMargins(GAP - TIGHT, 0, 0, 0)
        self._progress = QProgressBar(minimum=0, maximum=100, format="%p %")
        self._progress.hide()
        self._progress.setAccessibleName("Progress of the running job")
        self._progress.setFixedWidth(window.fontMetrics().height() * 14)
        self._time_left = QLabel()
        self._at_something = False
        """Whether the text is a status of a job, to be replaced at the next progress."""
        self._bar = bar = window.statusBar()
        bar.addWidget(self._status, 1)
        for widget in (self._time_left, self._progress):
            bar.addPermanentWidget(widget)
        jobs.began.connect(self._job_began)
        jobs.ended.connect(self._job_ended)

    @property
    def text(self) -> str:
        return self._status.text()

    def add(self, widget: QWidget) -> None:
        self._bar.addPermanentWidget(widget)

    def say(self, text: str) -> None:
        self._status.setText(localised(text))

    def show_progress(self, event: Progress) -> None:
        """Show the progress of a running job; ignore jobs that have ended."""
        job = self._jobs.find(event.job)
        if job is None:
            return
        build.show_share(self._progress, event.done / max(1, event.total))
        left = event.seconds_left
        self._time_left.setText("" if left is None else f"about {rough_duration(left, tenths=False)} left")
        if event.text or self._at_something:
            self._at_something = False
            self.say(event.text or f"{job.kind.value}…")

    def follow(self, event: Event) -> None:
        """Show the status of a job before its first progress, such as minutes of compiling."""
        job = self._jobs.find(event.job)
        if isinstance(event, EngineStatus) and job is not None:
            self._at_something = True
            self.say(f"{job.kind.value}: {event.text}")

    def _job_began(self, job: Job) -> None:
        self._at_something = False
        self.say(f"{job.kind.value}…")
        self._progress.reset()
        self._time_left.clear()
        self._progress.setVisible(bool(self._jobs.running))

    def _job_ended(self, job: Job, outcome: Outcome) -> None:
        self.say(f"{job.kind.value}: {outcome.value}")
        self._time_left.clear()
        self._progress.setVisible(bool(self._jobs.running))
