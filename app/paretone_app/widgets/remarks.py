"""Remarks on two takes: why they cannot be played or compared, and the facts below the plots."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QWidget

from paretone_app.numbers import counted
from paretone_app.shell.colours import Colours
from paretone_app.shell.icons import pixmap
from paretone_app.shell.metrics import GAP, NEAR
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout


class Caution(QWidget):
    """A sentence of caution about the comparison."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, visible=False)
        self._icon, self._text = QLabel(), build.words("warning", name="Warning")
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)

    def say(self, sentence: str) -> None:
        """Show ``sentence``, or nothing if it is empty."""
        self._text.setText(sentence)
        self.setVisible(bool(sentence))

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._icon.setPixmap(pixmap("warning", colours.warning, self.fontMetrics().height(), self.devicePixelRatioF()))


class DeviceProblem(QFrame):
    """Why nothing can be heard, and a button that looks for an audio device again."""

    retry_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.hide()
        self.setProperty("look", "banner")
        self.setProperty("level", "warning")
        self._icon, self._text = QLabel(), build.words(name="Audio device")
        self._retry = build.button("Reco&nnect", self.retry_wanted, "Look for an audio device again")
        row = HBoxLayout(self)
        row.setContentsMargins(GAP, NEAR, NEAR, NEAR)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self._retry)

    def say(self, problem: str, shown: bool) -> None:
        """Take over ``problem``, and show it or not."""
        self._text.setText(problem)
        self.setVisible(shown)

    def allow_retry(self, possible: bool) -> None:
        """Whether a device can be looked for now."""
        self._retry.setEnabled(possible)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        size = self.fontMetrics().height()
        self._icon.setPixmap(pixmap("speaker-off", colours.warning, size, self.devicePixelRatioF()))


class Facts(QWidget):
    """The switching mode, or the value under the mouse, underruns, and whether there is more to see."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._mode = build.label(look="muted", name="Switching mode")
        self._read_out = build.label(look="muted", name="Value under the mouse")
        self._underruns = build.label(look="muted", name="Underruns")
        self._hidden = build.label(
            "A − B is hidden", "muted", name="Difference", tip="It needs more height: F11 shows this panel alone"
        )
        self._hidden.hide()
        self._read_out.hide()
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for label in (self._mode, self._read_out):
            # Long sentences are cut rather than widen the panel; the tooltip has all of it.
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            row.addWidget(label, 1)
        row.addWidget(self._hidden)
        row.addWidget(self._underruns)

    def show_mode(self, title: str, reason: str) -> None:
        """Show what a switch does and why; nothing if ``reason`` is empty."""
        self._mode.setText(f"{title}: {reason}" if reason else "")
        self._mode.setToolTip(reason)

    def show_read_out(self, text: str) -> None:
        """Show what is under the mouse in place of the mode, or the mode again."""
        self._read_out.setText(text)
        self._read_out.setVisible(bool(text))
        self._mode.setVisible(not text)

    def show_difference(self, shown: bool) -> None:
        """Say that the difference of A and B has no room, or no longer."""
        self._hidden.setVisible(not shown)

    def show_underruns(self, underruns: int, waits: int) -> None:
        """Show how often the device, and the player, waited. Called 30 times a second."""
        text = counted(underruns, "underrun", "underruns")
        if waits:
            text = f"{text}, {counted(waits, 'wait', 'waits')} for the model"
        if text != self._underruns.text():
            self._underruns.setText(text)
            set_look(self._underruns, "warning" if underruns else "muted")
