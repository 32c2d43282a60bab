"""The page of MUSHRA."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QSlider, QWidget

from paretone_app.features.lab.two_answers import _DIGITS
from paretone_app.features.lab.trial import TrialPage, answer_button, sound_button
from paretone_app.listening.mushra import HIGHEST, LABELS, REFERENCE, MushraSession
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.boxes import Slider
from paretone_app.widgets.layouts import GridLayout, VBoxLayout

_LARGE_STEP = 10


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
        # All pages have as many sliders: the same settings with the same anchors.
        for button in self.session.sliders:
            key = _DIGITS[button - 1 : button] or "Left, Right"
            sound = sound_button(str(button), f"Hear sound {button}", f"Hear sound {button} ({key})", 1.6)
            sound.clicked.connect(lambda _=False, one=button: self.hear(one))
            slider = build.named(Slider(Qt.Orientation.Vertical), f"Rating of sound {button}")
            slider.setRange(0, HIGHEST)
            slider.setPageStep(_LARGE_STEP)
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

    def _keys(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        hearing = tuple(
            (key, lambda one=button: self.hear(one)) for button, key in zip(self.session.sliders, _DIGITS, strict=False)
        )
        return (
            ("R", lambda: self.hear(REFERENCE)),
            *hearing,
            ("Left", lambda: self._hear_neighbour(-1)),
            ("Right", lambda: self._hear_neighbour(1)),
            ("Return", self.done),
            ("Enter", self.done),
        )

    def _hear_neighbour(self, by: int) -> None:
        """The sound to the left or right of the one that is heard, the reference being the leftmost."""
        sounding = self.session.sounding
        self.hear(REFERENCE if sounding is None else (sounding + by) % len(self.session.trial.order))

    def hear(self, button: int) -> None:
        super().hear(button)
        if button in self.session.sliders:
            # The arrow keys rate what is heard.
            self.sliders[button - 1].setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def done(self) -> None:
        """Everything is rated."""
        self._answer(self.session.answer)

    def _rate(self, button: int, score: int) -> None:
        if self.session.may_rate(button):
            self.session.rate(button, score)
            self._show()
            self._show_hint()

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
        self.done_button.setEnabled(not session.why_not_answer())
        set_look(self.done_button, "" if session.why_not_answer() else "primary")

    def _keys_hint(self) -> str:
        return (
            "Keys: R plays the reference, digits the sounds, Left and Right the previous and next; Up, Down, Page Up, "
            "Page Down rate the playing sound; [ and ] set the loop's ends, L loops; Return continues."
        )


def _scale() -> QWidget:
    """The scale's words, each in the middle of its fifth, with the numbers between them."""
    held = QWidget()
    column = VBoxLayout(held)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    for place, label in enumerate(reversed(LABELS)):
        number = QLabel(str(HIGHEST - place * HIGHEST // len(LABELS)), alignment=Qt.AlignmentFlag.AlignRight)
        set_look(number, "muted")
        column.addWidget(number)
        column.addStretch(1)
        column.addWidget(QLabel(label, alignment=Qt.AlignmentFlag.AlignRight))
        column.addStretch(1)
    lowest = QLabel("0", alignment=Qt.AlignmentFlag.AlignRight)
    set_look(lowest, "muted")
    column.addWidget(lowest)
    return held
