"""The header of every workspace: what speaks with which setting, where it runs, how fast it is, and Cancel."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QAction, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QToolButton, QWidget

from app.numbers import fixed
from app.shell.metrics import GAP, NEAR
from app.state.app_state import AppState
from app.state.differences import technique_text
from app.state.jobs import Job, Outcome
from app.widgets import build
from app.widgets.layouts import HBoxLayout
from app.widgets.screen_readers import GROUP
from engine.models import catalogue
from engine.session.events import Telemetry
from engine.setting.take import Take

_RTF = "Real-time factor: seconds of computing per second of speech; below 1 is faster than real time"


class _Elided(QLabel):
    """A label that shortens its text rather than widens the window."""

    def __init__(self, look: str) -> None:
        super().__init__()
        self.setProperty("look", look)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 2, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
            painter.setPen(self.palette().color(self.foregroundRole()))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


class Header(QWidget):
    """Follows the selection and the last synthesis."""

    screen_role = GROUP

    def __init__(self, state: AppState, cancel: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._measured = ""
        """The last take's real-time factor, as text."""
        self.setAccessibleName("What speaks")
        self.model, self.voice, self.setting = _Elided("title"), _Elided("muted"), _Elided("muted")
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

    def show_figures(self, on: bool) -> None:
        """Show the real-time factor, or nothing that could sway a listener."""
        self.factor.setVisible(on)

    def show_telemetry(self, event: Telemetry) -> None:
        """Show the running estimate of a synthesis."""
        if event.real_time_factor is not None and self._state.jobs.find(event.job) is not None:
            self._show_factor(fixed(event.real_time_factor, 2), "running estimate")

    @Slot(object)
    def _show_take(self, take: Take) -> None:
        self._measured = fixed(take.measurements.real_time_factor, 2)
        self._show_factor(self._measured, take.label or "last take")

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome) -> None:
        """An estimate of what was not made is no figure of anything."""
        if outcome is not Outcome.FINISHED:
            self._show_factor(self._measured or "–", "last take" if self._measured else "")

    def _show_factor(self, text: str, of: str) -> None:
        self.factor.setText(f"RTF {text}")
        self.factor.setToolTip(f"{_RTF}\n{of[:1].upper() + of[1:]}" if of else _RTF)
        self.factor.setAccessibleName(f"RTF {text}, {of}" if of else "RTF: nothing measured yet")
