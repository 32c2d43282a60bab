"""Pages for the trials of each method."""

from collections.abc import Mapping

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QSlider, QWidget

from paretone.listening.trials import CCR, SIMILARITY
from paretone_app.features.lab.trial import Keys, TrialPage, answer_button, row_of, sound_button
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.mos import MosSession
from paretone_app.listening.mushra import HIGHEST, LABELS, REFERENCE, MushraSession
from paretone_app.listening.preference import PairsSession
from paretone_app.listening.staircase import StaircaseSession
from paretone_app.numbers import with_sign
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.boxes import Slider
from paretone_app.widgets.layouts import GridLayout, VBoxLayout

_DIGITS = "1234567890"  # Keys of answers, or of the first ten sounds.


class ChoicePage(TrialPage):
    """Hear the sounds, then choose one of the answers."""

    session: AbxSession | StaircaseSession | PairsSession | MosSession
    asked: str
    sounds: tuple[tuple[str, str], ...]
    """Name and key of each sound."""
    said: Mapping[int, str]
    """The answers in words, in the order of their keys."""

    def _sounds(self) -> QWidget:
        self.question.setText(self.asked)
        self.buttons = tuple(
            sound_button(name, f"Hear {self._in_words(name)}", f"Hear {self._in_words(name)}{self._from} ({key})")
            for name, key in self.sounds
        )
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        return row_of(*self.buttons)

    def _answers(self) -> QWidget:
        answers = zip(self.said.values(), _DIGITS, strict=False)
        self.answer_buttons = tuple(answer_button(f"{text}  ({key})", text) for text, key in answers)
        for what, button in zip(self.said, self.answer_buttons, strict=True):
            button.clicked.connect(lambda _=False, one=what: self.say(one))
        return row_of(*self.answer_buttons)

    def _keys(self) -> Keys:
        saying = ((key, lambda one=what: self.say(one)) for what, key in zip(self.said, _DIGITS, strict=False))
        hearing = ((key, lambda one=place: self.hear(one)) for place, (_, key) in enumerate(self.sounds))
        return (*hearing, *saying)

    def say(self, what: int) -> None:
        """Answer ``what``, one of :attr:`said`."""
        self._answer(lambda around: self.session.answer(what, around))

    def _show(self) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == self.session.sounding)
        self._allow(*self.answer_buttons)
        super()._show()

    _from = ""  # From where a sound plays, for tooltips.

    def _in_words(self, name: str) -> str:
        return name


class TwoAnswersPage(ChoicePage):
    """Hear the sounds in any order and in loops, then answer 1 or 2."""

    def _keys_hint(self) -> str:
        keys = f"Keys: {', '.join(key for _, key in self.sounds)} play; 1, 2 answer; Space plays and pauses"
        return f"{keys}; [ and ] set the loop's ends, L loops, Backspace returns to the start."


class AbxPage(TwoAnswersPage):
    """Hear A, B and X in any order, then answer what X is."""

    session: AbxSession
    name = "ABX"
    asked = "X is A or B. Which one?"
    sounds = (("A", "A"), ("B", "B"), ("X", "X"))
    said = {0: "X is A", 1: "X is B"}

    def _known_gains(self) -> str:
        gains = [with_sign(one.record.gain, "+") for one in self.session.item.stimuli]
        return f": A {gains[0]} dB, B {gains[1]} dB"


class PreferencePage(ChoicePage):
    """Hear both to the end, then answer which is better, or how much better the second is than the first."""

    session: PairsSession | MosSession
    name = "Comparison"
    loops = False
    restarts = True
    mode_reason = "Every sound plays from the beginning."
    sounds: tuple[tuple[str, str], ...] = (("First", "A"), ("Second", "B"))
    _from = " from its beginning"

    def _sounds(self) -> QWidget:
        self.asked, self.said = self._question(), dict(sorted(self.session.votes.items()))
        return super()._sounds()

    def _question(self) -> str:
        graded = self.session.method == CCR
        return "Compared with the first, the second is …" if graded else "Which of the two do you prefer?"

    def _in_words(self, name: str) -> str:
        return f"the {name.lower()}"

    def _show(self) -> None:
        super()._show()
        for place, button in enumerate(self.buttons):
            button.setText(f"{self.sounds[place][0]}{'  ✓' if place in self.session.heard_whole else ''}")

    def _keys_hint(self) -> str:
        keys = ", ".join(f"{key} plays {self._in_words(name)}" for name, key in self.sounds)
        return f"Keys: {keys}; 1 to {len(self.said)} answer; Space plays and pauses."


class MosPage(PreferencePage):
    """Hear the speech to the end, for similarity the voice's recording too, then rate it (ITU-T P.800)."""

    session: MosSession
    name = "MOS"

    def _sounds(self) -> QWidget:
        speech = ("Speech", "A")
        self.sounds = (("Voice", "V"), speech) if self.session.method == SIMILARITY else (speech,)
        return super()._sounds()

    def _question(self) -> str:
        if self.session.method == SIMILARITY:
            return "How much does the speech sound like the same speaker as the voice? It is …"
        return "How natural does the speech sound, compared with a person speaking? It is …"


class StaircasePage(TwoAnswersPage):
    """Hear the reference, A and B in any order, then answer which of A and B is not the reference."""

    session: StaircaseSession
    name = "Staircase"
    asked = "A or B is the reference again. Which one is not?"
    sounds = (("Reference", "R"), ("A", "A"), ("B", "B"))
    said = {0: "A is not the reference", 1: "B is not the reference"}


class MushraPage(TrialPage):
    """Rate each sound against the reference; one of them is the reference itself."""

    session: MushraSession
    name = "MUSHRA"
    grows = True
    fades_out_and_in = True

    def _sounds(self) -> QWidget:
        self.question.setText(
            "Rate every sound against the reference. One of them is the reference itself: rate it 100. The "
            "reference is the unaccelerated output of the same model, not human speech."
        )
        held = QWidget()
        grid = GridLayout(held)
        grid.setContentsMargins(0, 0, 0, 0)
        self.reference_button = sound_button("Reference", "Hear the reference", "Hear the reference (R)", 1.6)
        self.reference_button.clicked.connect(lambda _=False: self.hear(REFERENCE))
        grid.addWidget(self.reference_button, 0, 0)
        grid.addWidget(_scale(), 1, 0)
        self.buttons: list[QPushButton] = []
        self.sliders: list[QSlider] = []
        self.values: list[QLabel] = []
        # All pages have the same number of sliders: same settings, same anchors.
        for button in self.session.sliders:
            key = _DIGITS[button - 1 : button] or "Left, Right"
            sound = sound_button(str(button), f"Hear sound {button}", f"Hear sound {button} ({key})", 1.6)
            sound.clicked.connect(lambda _=False, one=button: self.hear(one))
            slider = build.named(Slider(Qt.Orientation.Vertical, pageStep=10), f"Rating of sound {button}")
            slider.setRange(0, HIGHEST)
            slider.setTickInterval(HIGHEST // len(LABELS))
            slider.setTickPosition(QSlider.TickPosition.TicksBothSides)
            slider.valueChanged.connect(lambda value, one=button: self._rate(one, value))
            value = QLabel("–", alignment=Qt.AlignmentFlag.AlignHCenter)
            grid.addWidget(sound, 0, button)
            grid.addWidget(slider, 1, button, Qt.AlignmentFlag.AlignHCenter)
            grid.addWidget(value, 2, button)
            self.buttons.append(sound)
            self.sliders.append(slider)
            self.values.append(value)
        grid.setRowStretch(1, 1)
        return held

    def _answers(self) -> QWidget:
        self.done_button = answer_button("Next page  (Return)", "Next page")
        self.done_button.clicked.connect(self.done)
        return self.done_button

    def _keys(self) -> Keys:
        sounds = (*zip(self.session.sliders, _DIGITS, strict=False), (REFERENCE, "R"))
        hearing = ((key, lambda one=button: self.hear(one)) for button, key in sounds)
        walking = (("Left", lambda: self._hear_neighbour(-1)), ("Right", lambda: self._hear_neighbour(1)))
        return (*hearing, *walking, ("Return", self.done), ("Enter", self.done))

    def _hear_neighbour(self, by: int) -> None:
        """Play the sound left or right of the current one; the reference is leftmost."""
        sounding = self.session.sounding
        self.hear(REFERENCE if sounding is None else (sounding + by) % len(self.session.trial.order))

    def hear(self, button: int) -> None:
        super().hear(button)
        if button in self.session.sliders:
            # The arrow keys rate the sound being heard.
            self.sliders[button - 1].setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def done(self) -> None:
        self._answer(self.session.answer)

    def _rate(self, button: int, score: int) -> None:
        if self.session.may_rate(button):
            self.session.rate(button, score)
            self._show()

    def _show(self) -> None:
        session = self.session
        self.reference_button.setChecked(session.sounding == REFERENCE)
        for button, sound, slider, value in zip(session.sliders, self.buttons, self.sliders, self.values, strict=True):
            sound.setChecked(session.sounding == button)
            slider.setEnabled(session.may_rate(button))
            score = session.ratings.get(button)
            value.setText("–" if score is None else str(score))
            with QSignalBlocker(slider):
                slider.setValue(0 if score is None else score)
        super()._show()
        self._allow(self.done_button)
        set_look(self.done_button, "" if session.why_not_answer() else "primary")

    def _keys_hint(self) -> str:
        return (
            "Keys: R plays the reference, digits the sounds, Left and Right the previous and next; Up, Down, Page Up, "
            "Page Down rate the playing sound; [ and ] set the loop's ends, L loops; Return continues."
        )


def _scale() -> QWidget:
    """The scale's labels, each in the middle of its fifth, with numbers between them."""
    right = Qt.AlignmentFlag.AlignRight
    numbers = [QLabel(str(one * HIGHEST // len(LABELS)), alignment=right) for one in range(len(LABELS), -1, -1)]
    for number in numbers:
        set_look(number, "muted")
    parts: list[QWidget | int] = [numbers[-1]]
    for number, label in zip(reversed(numbers[:-1]), LABELS, strict=True):
        parts[:0] = number, 1, QLabel(label, alignment=right), 1
    build.fill(VBoxLayout(held := QWidget()), parts).setSpacing(0)
    return held
