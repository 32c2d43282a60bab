"""The page of a staircase."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.features.lab.trial import TrialPage, answer_button, row_of, sound_button
from app.listening.staircase import StaircaseSession

_SOUNDS = (("Reference", "R"), ("A", "A"), ("B", "B"))


class StaircasePage(TrialPage):
    """Hear the reference, A and B in any order, then say which of the two is not the reference."""

    session: StaircaseSession
    name = "Staircase"

    def _sounds(self) -> QWidget:
        self.question.setText("A or B is the reference again. Which one is not?")
        self.buttons = tuple(sound_button(name, f"Hear {name}", f"Hear {name} ({key})") for name, key in _SOUNDS)
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        return row_of(*self.buttons)

    def _answers(self) -> QWidget:
        self.answer_buttons = tuple(
            answer_button(f"{name} is not the reference  ({key})", f"{name} is not the reference")
            for name, key in zip("AB", "12", strict=True)
        )
        for place, button in enumerate(self.answer_buttons):
            button.clicked.connect(lambda _=False, one=place: self.say(one))
        return row_of(*self.answer_buttons)

    def _keys(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        hearing = tuple((key, lambda one=place: self.hear(one)) for place, (_, key) in enumerate(_SOUNDS))
        return (*hearing, ("1", lambda: self.say(0)), ("2", lambda: self.say(1)))

    def say(self, what: int) -> None:
        """A (0) or B (1) is not the reference."""
        self._answer(lambda around: self.session.answer(what, around))

    def _show(self) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == self.session.sounding)
        for button in self.answer_buttons:
            button.setEnabled(not self.session.why_not_answer())

    def _keys_hint(self) -> str:
        return (
            "Keys: R, A, B play; 1, 2 answer; Space plays and pauses; [ and ] set the loop's ends, L loops, "
            "Backspace returns to the start."
        )
