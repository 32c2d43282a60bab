"""The page of ABX."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.features.lab.trial import TrialPage, answer_button, row_of, sound_button
from app.listening.abx import AbxSession, X
from app.listening.wording import signed

_NAMES = ("A", "B", "X")


class AbxPage(TrialPage):
    """Hear A, B and X in any order, then say what X is."""

    session: AbxSession
    name = "ABX"

    def _sounds(self) -> QWidget:
        self.question.setText("X is A or B. Which one?")
        self.buttons = tuple(sound_button(name, f"Hear {name}", f"Hear {name} ({name})") for name in _NAMES)
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        return row_of(*self.buttons)

    def _answers(self) -> QWidget:
        self.answer_buttons = tuple(
            answer_button(f"X is {name}  ({key})", f"X is {name}") for name, key in zip("AB", "12", strict=True)
        )
        for place, button in enumerate(self.answer_buttons):
            button.clicked.connect(lambda _=False, one=place: self.say(one))
        return row_of(*self.answer_buttons)

    def _keys(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        hearing = tuple((name, lambda one=place: self.hear(one)) for place, name in enumerate(_NAMES))
        return (*hearing, ("1", lambda: self.say(0)), ("2", lambda: self.say(1)))

    def say(self, what: int) -> None:
        """X is A (0) or B (1)."""
        self._answer(lambda around: self.session.answer(what, around))

    def _show(self) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == self.session.sounding)
        for button in self.answer_buttons:
            button.setEnabled(X in self.session.heard)

    def _keys_hint(self) -> str:
        return (
            "Keys: A, B, X play; 1, 2 answer; Space plays and pauses; [ and ] set the loop's ends, L loops, "
            "Backspace returns to the start."
        )

    def _known_gains(self) -> str:
        gains = [signed(one.record.gain, "+") for one in self.session.item.stimuli]
        return f": A {gains[0]} dB, B {gains[1]} dB"
