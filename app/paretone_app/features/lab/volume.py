"""The page before a test: set the volume, by sounds that are as loud as everything that will be heard."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from paretone_app.audio.player import Player
from paretone_app.features.lab.trial import answer_button, row_of, sound_button
from paretone_app.listening import stimuli as calibration
from paretone_app.listening.wording import signed
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import GROUP

NOISE, TONE = range(2)
_SOUNDS = (("Noise", "N", "pink noise, 100 Hz to 8 kHz"), ("Tone", "T", "a tone of 1 kHz"))
_POLL_MILLISECONDS = 100


class VolumePage(QWidget):
    """Hear noise or a tone at the level of the test, until the volume is right. Methods in, signals out."""

    screen_role = GROUP

    done = Signal()
    """The volume is set; the test can begin."""
    abandon_wanted = Signal()
    problem_changed = Signal(str)
    """Why nothing can be heard, as a sentence, or ``""``."""

    def __init__(self, target: float, player: Player, parent: QWidget | None = None) -> None:
        """``target`` is the level of everything in the test, in LUFS."""
        super().__init__(parent)
        self._player = player
        self._problem = ""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Volume")
        title = QLabel("Volume")
        set_look(title, "title")
        self.leave_button = build.button("A&bandon", self.abandon_wanted)
        self.leave_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        top = HBoxLayout()
        top.addWidget(title)
        top.addStretch(1)
        top.addWidget(self.leave_button)
        words = QLabel(
            "Set a comfortable volume on your device at which soft details are audible, and do not change it "
            "until the test is over. All sounds of the test are as loud as these.",
            wordWrap=True,
        )
        self.buttons = tuple(sound_button(name, f"Hear {what}", f"Hear {what} ({key})") for name, key, what in _SOUNDS)
        self.begin_button = answer_button("Volume is set  (Return)", "Volume is set")
        set_look(self.begin_button, "primary")
        self.begin_button.clicked.connect(self.done)
        hint = QLabel("Keys: N plays the noise, T the tone; Space plays and pauses; Return continues.", wordWrap=True)
        facts = QLabel(f"Both play at {signed(target)} LUFS (ITU-R BS.1770), in a loop.", wordWrap=True)
        self.setAccessibleDescription(f"{words.text()} {hint.text()}")
        set_look(hint, "muted")
        set_look(facts, "muted")
        layout = VBoxLayout(self)
        layout.addLayout(top)
        layout.addStretch(1)
        layout.addWidget(words)
        layout.addWidget(row_of(*self.buttons))
        layout.addWidget(self.begin_button)
        layout.addStretch(2)
        layout.addWidget(hint)
        layout.addWidget(facts)
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        for key, slot in (
            ("N", lambda: self.hear(NOISE)),
            ("T", lambda: self.hear(TONE)),
            ("Space", self._press_space),
            ("Return", self.done.emit),
            ("Enter", self.done.emit),
        ):
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)
        self._poll = QTimer(self, interval=_POLL_MILLISECONDS)
        self._poll.timeout.connect(self._follow)
        rate = player.rate
        sounds = calibration.noise(rate), calibration.tone(rate)
        player.fade_out_and_in(False)
        player.load([(one, rate) for one in sounds], [calibration.gain(one, rate, target) for one in sounds])
        player.set_loop(0.0, calibration.SECONDS)
        self._poll.start()

    def hear(self, sound: int) -> None:
        """Hear the noise or the tone."""
        self._player.choose(sound)
        self._player.play()
        self._show(sound)

    def shut_down(self) -> None:
        """Fall silent; the page is not used any more."""
        self._poll.stop()
        self._player.pause()
        self._player.clear_loop()

    def _press_space(self) -> None:
        focus = self.focusWidget()
        if isinstance(focus, QPushButton) and focus.hasFocus():
            focus.click()
        elif self._player.playing:
            self._player.pause()
            self._show(None)
        else:
            self.hear(self._player.choice)

    def _show(self, heard: int | None) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == heard)

    def _follow(self) -> None:
        if self._player.problem != self._problem:
            self._problem = self._player.problem
            self.problem_changed.emit(self._problem)
