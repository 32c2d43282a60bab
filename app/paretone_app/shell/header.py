"""The header of every workspace: what speaks with which setting, where it runs, how fast it is, and Cancel."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from paretone.models import catalogue
from paretone.session.commands import Synthesise
from paretone.session.events import Telemetry
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone_app.numbers import fixed
from paretone_app.shell.metrics import GAP, NEAR
from paretone_app.state.app_state import AppState
from paretone_app.state.differences import label_of, technique_text
from paretone_app.state.jobs import Job
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout
from paretone_app.widgets.screen_readers import GROUP

_RTF = "Real-time factor: seconds of computing per second of speech; below 1 is faster than real time"


class _Part(build.Yielding):
    """Of what speaks: as wide as its text where there is room."""

    def __init__(self, look: str) -> None:
        super().__init__()
        self.setProperty("look", look)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 2, super().minimumSizeHint().height())


class Header(QWidget):
    """Follows the selection and the last synthesis."""

    screen_role = GROUP

    def __init__(self, state: AppState, cancel: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._measured: tuple[float, Setting, str] | None = None
        """The last take's real-time factor, what it was made with, and what it is called."""
        self._estimate: tuple[float, Setting] | None = None
        """That of the synthesis that runs."""
        self.setAccessibleName("What speaks")
        self.model, self.voice, self.setting = _Part("title"), _Part("muted"), _Part("muted")
        self.device = build.label("starting", "chip", name="Device: unknown")
        self.factor = build.label("RTF –", "title", tip=_RTF)
        self.cancel = QToolButton()
        self.cancel.setDefaultAction(cancel)
        self.cancel.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.cancel.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.cancel.setProperty("look", "step")
        self.cancel.setAccessibleName("Cancel")
        row = HBoxLayout(self)
        row.setContentsMargins(NEAR, 0, NEAR, 0)
        row.setSpacing(GAP)
        for part in (self.model, self.voice, self.setting):
            row.addWidget(part)
        row.addStretch(1)
        for widget in (self.factor, self.device, self.cancel):
            row.addWidget(widget)
        state.synthesis.take_added.connect(self._show_take)
        state.synthesis.remeasured.connect(self._show_take)
        state.jobs.ended.connect(self._job_ended)

    def refresh(self) -> None:
        """Show the present selection."""
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
        self.device.setText(device)
        self.device.setAccessibleName(f"Device: {device}")
        self.device.setToolTip(f"The model runs on {device}.\n{self._state.machine.title}")
        self._show_factor()

    def show_figures(self, on: bool) -> None:
        """Show the real-time factor, or nothing that could sway a listener."""
        self.factor.setVisible(on)

    def show_telemetry(self, event: Telemetry) -> None:
        """Show the running estimate of a synthesis."""
        job = self._state.jobs.find(event.job)
        if event.real_time_factor is not None and job is not None and isinstance(job.command, Synthesise):
            self._estimate = event.real_time_factor, job.command.setting
            self._show_factor()

    @Slot(object)
    def _show_take(self, take: Take) -> None:
        if take.unfinished:
            return  # Its time is that of a part.
        self._measured = take.measurements.real_time_factor, take.setting, label_of(take) or "last take"
        self._estimate = None
        self._show_factor()

    @Slot(object)
    def _job_ended(self, job: Job) -> None:
        """Discard the estimate of a take that ended."""
        if isinstance(job.command, Synthesise):
            self._estimate = None
            self._show_factor()

    def _show_factor(self) -> None:
        """Show the last real-time factor if it is the shown model's; of which setting, if not of the shown one."""
        chosen = self._state.selection
        shown = (*self._estimate, "running estimate") if self._estimate is not None else self._measured
        if shown is None or chosen.candidate or shown[1].model != chosen.model_id:
            self.factor.setText("RTF –")
            self.factor.setToolTip(_RTF)
            self.factor.setAccessibleName("RTF: nothing measured yet")
            return
        factor, setting, what = shown
        made, text = replace(setting, seed=0), f"RTF {fixed(factor, 2)}"
        if made == replace(chosen.setting, seed=0):
            self.factor.setText(text)
        elif made == replace(chosen.baseline_setting, seed=0):
            self.factor.setText(f"{text} (baseline)")
        else:
            self.factor.setText(f"{text} (earlier setting)")
        self.factor.setToolTip(f"{_RTF}\n{what[:1].upper() + what[1:]}")
        self.factor.setAccessibleName(f"{self.factor.text()}, {what}")
