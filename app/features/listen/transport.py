"""The row of controls above two takes: start, play, loop, which one is heard, where, and how loud."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton, QWidget

from app.shell.icons import icon
from app.shell.theme import Colours, set_look
from app.widgets import build
from app.widgets.side_buttons import SIDES, SideButtons


class TransportBar(QWidget):
    """Shows its state and emits what is wanted; it plays nothing."""

    start_wanted = Signal()
    play_wanted = Signal()
    """Play or pause."""
    loop_wanted = Signal()
    """Repeat, or stop repeating."""
    side_wanted = Signal(str)
    """``"A"`` or ``"B"`` is to be heard."""
    switch_wanted = Signal()
    """The other side is to be heard."""
    matching_changed = Signal(bool)
    """Whether both sides are to be equally loud."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._start = self._button("Go to the start", "Home", self.start_wanted)
        self._play = self._button("Play", "Space", self.play_wanted)
        self._loop = self._button("Loop", "L", self.loop_wanted, checkable=True)
        self._switch = self._button("Switch between A and B", "X", self.switch_wanted)
        self._sides = SideButtons("take", verb="Hear", between=self._switch)
        self._sides.chosen.connect(self.side_wanted)
        for button in self._sides.buttons.values():
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._time = build.label(name="Position")
        self._match = QCheckBox("Match &loudness")
        self._match.setChecked(True)
        self._match.setToolTip("Equal loudness for A and B (ITU-R BS.1770), because louder always sounds better")
        self._match.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._match.toggled.connect(self.matching_changed)
        self._gains = build.label(name="Gains")
        set_look(self._gains, "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for widget in (self._start, self._play, self._loop):
            row.addWidget(widget)
        row.addSpacing(10)
        row.addWidget(self._sides)
        row.addSpacing(10)
        row.addWidget(self._time)
        row.addStretch(1)
        row.addWidget(self._match)
        row.addWidget(self._gains)

    @staticmethod
    def _button(name: str, key: str, wanted: SignalInstance, checkable: bool = False) -> QPushButton:
        button = build.button("", tip=f"{name} ({key})", name=name)
        button.setCheckable(checkable)
        # A click leaves the focus where it is, so that Space still means play and pause.
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda _=False: wanted.emit())
        return button

    @property
    def matches(self) -> bool:
        """Whether both sides are to be equally loud."""
        return self._match.isChecked()

    def set_colours(self, colours: Colours, playing: bool) -> None:
        """Follow the theme."""
        self._start.setIcon(icon("start"))
        self._loop.setIcon(icon("loop"))
        self._switch.setIcon(icon("switch"))
        self._sides.set_colours(colours)
        self.show_playing(playing)

    def show_playing(self, playing: bool) -> None:
        """Show what the play button would do."""
        self._play.setIcon(icon("pause" if playing else "play"))
        self._play.setAccessibleName("Pause" if playing else "Play")
        self._play.setToolTip(f"{self._play.accessibleName()} (Space)")

    def allow_playing(self, possible: bool) -> None:
        """Whether anything could be heard."""
        self._play.setEnabled(possible)

    def show_sides(self, heard: str, there: Collection[str]) -> None:
        """Show which side is ``heard``, and offer those that are ``there``."""
        self._sides.show_side(heard, there)
        self._switch.setEnabled(all(side in there for side in SIDES))

    def show_name(self, side: str, name: str | None) -> None:
        """Show what is on ``side``; ``None`` for nothing."""
        button = self._sides.buttons[side]
        button.setEnabled(name is not None)
        button.setToolTip(f"No take {side} yet" if name is None else f"{name} ({side})")

    def show_loop(self, loop: tuple[float, float] | None) -> None:
        """Show what repeats, in seconds."""
        self._loop.setChecked(loop is not None)
        said = "Loop" if loop is None else f"Loop from {loop[0]:.2f} to {loop[1]:.2f} s"
        self._loop.setToolTip(f"{said} (L)")
        self._loop.setAccessibleDescription(said)

    def show_time(self, text: str) -> None:
        """Show the position. Called 30 times a second."""
        if self._time.text() != text:
            self._time.setText(text)

    def show_gains(self, text: str, caution: str) -> None:
        """Show how loud the sides are made, and what is to be known about it."""
        self._gains.setText(text)
        self._gains.setToolTip(caution)
        set_look(self._gains, "warning" if caution else "muted")
