"""Common part of the pages of tests with two answers, A or B, about sounds that are heard in any order."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from paretone_app.features.lab.trial import TrialPage, answer_button, row_of, sound_button
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.staircase import StaircaseSession

_DIGITS = "1234567890"
"""Keys of answers, or of the first ten sounds."""


class TwoAnswersPage(TrialPage):
    """Hear the sounds, then answer 1 or 2."""

    session: AbxSession | StaircaseSession
    asked: str
    """The question."""
    sounds: tuple[tuple[str, str], ...]
    """Name and key of each sound."""
    said: tuple[str, str]
    """The answers."""

    def _sounds(self) -> QWidget:
        self.question.setText(self.asked)
        self.buttons = tuple(sound_button(name, f"Hear {name}", f"Hear {name} ({key})") for name, key in self.sounds)
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        return row_of(*self.buttons)

    def _answers(self) -> QWidget:
        self.answer_buttons = tuple(
            answer_button(f"{text}  ({key})", text) for text, key in zip(self.said, _DIGITS, strict=False)
        )
        for place, button in enumerate(self.answer_buttons):
            button.clicked.connect(lambda _=False, one=place: self.say(one))
        return row_of(*self.answer_buttons)

    def _keys(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        hearing = tuple((key, lambda one=place: self.hear(one)) for place, (_, key) in enumerate(self.sounds))
        return (*hearing, *((key, lambda one=place: self.say(one)) for place, key in enumerate(_DIGITS[:2])))

    def say(self, what: int) -> None:
        """Give the first answer (0) or the second (1)."""
        self._answer(lambda around: self.session.answer(what, around))

    def _show(self) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == self.session.sounding)
        for button in self.answer_buttons:
            button.setEnabled(not self.session.why_not_answer())

    def _keys_hint(self) -> str:
        keys = ", ".join(key for _, key in self.sounds)
        return (
            f"Keys: {keys} play; 1, 2 answer; Space plays and pauses; [ and ] set the loop's ends, L loops, "
            "Backspace returns to the start."
        )
