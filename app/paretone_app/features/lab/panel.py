"""Lab: blind listening tests: set up, trials, results."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QLabel, QPushButton, QStackedWidget, QWidget

from paretone_app.audio.player import Player
from paretone_app.features.lab.methods import AbxPage, MushraPage, PreferencePage, StaircasePage
from paretone_app.features.lab.results import LabResults
from paretone_app.features.lab.setup import LabSetup
from paretone_app.features.lab.trial import TrialPage, answer_button, row_of, sound_button
from paretone_app.listening import stimuli as calibration
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mushra import MushraSession
from paretone_app.listening.session import ListeningSession
from paretone_app.listening.staircase import StaircaseSession
from paretone_app.listening.wording import signed
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, set_look
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.panel_parts import DeviceProblem
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


class LabPanel(QWidget):
    """One page at a time: setting up, the volume, trials, results."""

    answered = Signal(object)
    """A :class:`TrialRecord` that was just given."""
    abandoned = Signal()
    waited_enough = Signal()
    """The user no longer waits for the test to begin."""
    shown = Signal()
    """The panel can be seen again."""
    reconnect_wanted = Signal()
    """The audio device went away and is to be looked for again."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self.setup = LabSetup()
        self.results = LabResults(colours)
        self.results.back_wanted.connect(self.show_setup)
        self._waiting = WaitingPage()
        self._waiting.cancel_wanted.connect(self.waited_enough)
        self.trial: TrialPage | None = None
        """The page of the test that is on."""
        self.volume: VolumePage | None = None
        """The page on which the volume is set, while it is shown."""
        self._device_problem = DeviceProblem()
        self._device_problem.retry_wanted.connect(self.reconnect_wanted)
        self._pages = QStackedWidget()
        for page in (self.setup, self.results, self._waiting):
            self._pages.addWidget(page)
        layout = VBoxLayout(self)
        layout.setContentsMargins(GAP, NEAR, GAP, NEAR)
        layout.addWidget(self._device_problem)
        layout.addWidget(self._pages, 1)
        self.set_colours(colours)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.results.set_colours(colours)
        self._device_problem.set_colours(colours)
        if self.trial is not None:
            self.trial.set_colours(colours)

    def show_setup(self) -> None:
        """Go to the page on which a test is set up."""
        self._go_to(self.setup)
        self.setup.method.setFocus()

    def show_results(self) -> None:
        """Go to the results."""
        self._go_to(self.results)
        self.results.back_button.setFocus()

    def show_waiting(self, sentence: str, can_cancel: bool = False) -> None:
        """Say what is being done before a test can begin."""
        self._waiting.say(sentence, can_cancel)
        self._go_to(self._waiting)

    def set_volume(self, target: float, player: Player, then: Callable[[], None]) -> None:
        """Let the volume be set at ``target`` LUFS, heard by ``player``, and do ``then``."""
        self.volume = VolumePage(target, player, self._pages)
        self.volume.done.connect(then)
        self.volume.abandon_wanted.connect(self.abandoned)
        self._show_page_with_sound(self.volume)

    def begin(self, session: ListeningSession, player: Player) -> None:
        """Go through ``session``, heard by ``player``."""
        self._end_volume()
        kinds = {AbxSession: AbxPage, MushraSession: MushraPage, StaircaseSession: StaircasePage}
        kind = kinds.get(type(session), PreferencePage)
        self.trial = kind(session, player, self._colours, self._pages)
        self.trial.answered.connect(self.answered)
        self.trial.abandon_wanted.connect(self.abandoned)
        self._show_page_with_sound(self.trial)

    def _show_page_with_sound(self, page: VolumePage | TrialPage) -> None:
        page.problem_changed.connect(lambda problem: self._device_problem.say(problem, bool(problem)))
        self._pages.addWidget(page)
        self._go_to(page)
        page.setFocus()

    def _end_volume(self) -> None:
        if self.volume is not None:
            self.volume.shut_down()
            self._pages.removeWidget(self.volume)
            self.volume.deleteLater()
            self.volume = None

    def end(self) -> None:
        """The test is over, carried through or not."""
        self._end_volume()
        if self.trial is not None:
            self.trial.shut_down()
            self._pages.removeWidget(self.trial)
            self.trial.deleteLater()
            self.trial = None
        self._device_problem.say("", False)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def _go_to(self, page: QWidget) -> None:
        self._pages.setCurrentWidget(page)
        self.setFocusProxy(page if isinstance(page, TrialPage | VolumePage) else page.focusProxy() or page)


class WaitingPage(QWidget):
    """Progress of the preparation of a test."""

    cancel_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self.cancel_button = build.button("&Do not wait", self.cancel_wanted)
        layout = VBoxLayout(self)
        layout.addStretch(1)
        layout.addWidget(self._words)
        layout.addWidget(self.cancel_button, 0, Qt.AlignmentFlag.AlignCenter)
        layout.addStretch(1)

    def say(self, sentence: str, can_cancel: bool) -> None:
        """Show ``sentence``; ``can_cancel``: whether the user can stop waiting."""
        self._words.setText(sentence)
        self.cancel_button.setVisible(can_cancel)
