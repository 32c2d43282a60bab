"""Parts that several panels have: lines of remarks, progress of a job, buttons that save or install, a list to tick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QLabel,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QSizePolicy,
    QWidget,
)

from paretone import extras
from paretone.errors import PlainError
from paretone.extras import Extra
from paretone_app.numbers import counted, rough_duration
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import pixmap, set_look
from paretone_app.state.machine import Installing
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import HBoxLayout


class Caution(QWidget):
    """A sentence of caution about the comparison."""

    def __init__(self) -> None:
        super().__init__(visible=False)
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
        self._icon.setPixmap(pixmap("warning", colours.warning, self.fontMetrics().height(), self.devicePixelRatioF()))


class Facts(QWidget):
    """The switching mode, or the value under the mouse, underruns, and whether there is more to see."""

    def __init__(self) -> None:
        super().__init__()
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


class JobProgress(QProgressBar):
    """Busy until the first figures come."""

    def __init__(self, name: str) -> None:
        """``name`` is for screen readers."""
        super().__init__()
        self.setAccessibleName(name)

    def begin(self) -> None:
        """A job begins of which nothing is known yet."""
        self.setRange(0, 0)
        self.setFormat("")

    def show_progress(self, done: int, total: int, seconds_left: float | None) -> None:
        """``done`` of ``total`` is done."""
        self.setRange(0, total)
        self.setValue(done)
        left = (
            "" if seconds_left is None or seconds_left < 1 else f", {rough_duration(seconds_left, tenths=False)} left"
        )
        self.setFormat(f"%p %{left}")


class ExportButtons(QWidget):
    """A button for each kind of file."""

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for action in actions:
            row.addWidget(ActionButton(action, name=action.tip), 1)


class InstallOffer(QWidget):
    """Hidden unless something is missing. While that is installed, the button cancels, and a line says what is done."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._installing: Installing | None = None
        self._extra: Extra | None = None
        self._action = Action("Install", parent=self)
        self._action.triggered.connect(self._press)
        self.button = ActionButton(self._action)
        self.said = QLabel()
        self.said.setProperty("look", "muted")
        self.said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        build.fill(HBoxLayout(self), [self.button, (self.said, 1)])
        self.hide()

    def follow(self, installing: Installing) -> None:
        """Install by ``installing``."""
        self._installing = installing
        installing.changed.connect(self._show)

    def offer(self, sentence: str) -> None:
        """Offer what ``sentence`` says to install, or nothing."""
        self.offer_extra(extras.named_in(sentence))

    def offer_extra(self, extra: Extra | None) -> None:
        """Offer ``extra``, or nothing."""
        if extra != self._extra or self._installing is None:
            self._extra = extra
            self.said.clear()
        self._show()

    def _show(self) -> None:
        installing, extra = self._installing, self._extra
        runs = installing is not None and extra is not None and installing.running == extra
        there = installing is not None and extra is not None and (runs or bool(extra.missing))
        self.setVisible(there)
        if installing is None or extra is None or not there:
            return
        names = ", ".join(extra.missing) or extra.title
        self._action.setText("Cancel installing" if runs else f"Install {names}")
        if runs:
            self._action.set_tip("Stop; nothing that was there before is changed")
            self._action.set_reason("")
            self.said.setText(installing.text or "Installing…")
            return
        self.said.clear()
        self._action.set_tip(
            f"For: {extra.title}. Installs into Paretone's own environment; what is installed already stays as it is."
        )
        self._action.set_reason(installing.why_not())

    def refresh(self) -> None:
        """Something else runs, or nothing does any more."""
        self._show()

    def _press(self) -> None:
        installing, extra = self._installing, self._extra
        if installing is None or extra is None:
            return
        if installing.running == extra:
            installing.cancel()
            return
        try:
            installing.start(extra.name)
        except PlainError as error:
            self.said.setText(str(error))


_FLAGS = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable


class TickList(QListWidget):
    """Long titles go on in the next line."""

    def __init__(self, name: str) -> None:
        """``name`` is for screen readers."""
        super().__init__()
        self.setAccessibleName(name)
        self.setWordWrap(True)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def offer(self, entries: Iterable[tuple[str, object, bool]], why_not: Mapping[Any, str] | None = None) -> None:
        """Have these in the list: title, value, and whether it is ticked; values of ``why_not`` cannot be ticked, for
        the reason there. Emits nothing."""
        reasons = why_not or {}
        with QSignalBlocker(self):
            self.clear()
            for title, value, ticked in entries:
                item = QListWidgetItem(title, self)
                item.setData(Qt.ItemDataRole.UserRole, value)
                item.setToolTip(reasons.get(value, ""))
                item.setFlags(Qt.ItemFlag.NoItemFlags if value in reasons else _FLAGS)
                on = ticked and value not in reasons
                item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    @property
    def ticked(self) -> tuple[Any, ...]:
        items = (self.item(row) for row in range(self.count()))
        return tuple(one.data(Qt.ItemDataRole.UserRole) for one in items if one.checkState() is Qt.CheckState.Checked)
