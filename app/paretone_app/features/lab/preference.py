"""The page of preference tests and of comparison category rating."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from paretone.listening.trials import CCR
from paretone_app.features.lab.two_answers import _DIGITS
from paretone_app.features.lab.trial import TrialPage, answer_button, row_of, sound_button
from paretone_app.listening.preference import FIRST, SECOND, PairsSession

_NAMES = ("First", "Second")


class PreferencePage(TrialPage):
    """Hear both to the end, then say which is better."""

    session: PairsSession
    name = "Comparison"
    loops = False
    restarts = True

    def _sounds(self) -> QWidget:
        graded = self.session.method == CCR
        self.question.setText(
            "Compared with the first, the second is …" if graded else "Which of the two do you prefer?"
        )
        self.buttons = tuple(
            sound_button(name, f"Hear the {name.lower()}", f"Hear the {name.lower()} from its beginning ({key})")
            for name, key in zip(_NAMES, "AB", strict=True)
        )
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, one=place: self.hear(one))
        return row_of(*self.buttons)

    def _answers(self) -> QWidget:
        self.votes = sorted(self.session.votes)
        self.answer_buttons = tuple(
            answer_button(f"{self.session.votes[vote]}  ({key})", self.session.votes[vote])
            for vote, key in zip(self.votes, _DIGITS, strict=False)
        )
        for vote, button in zip(self.votes, self.answer_buttons, strict=True):
            button.clicked.connect(lambda _=False, one=vote: self.vote(one))
        return row_of(*self.answer_buttons)

    def _keys(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        voting = tuple((key, lambda one=vote: self.vote(one)) for vote, key in zip(self.votes, _DIGITS, strict=False))
        return (("A", lambda: self.hear(FIRST)), ("B", lambda: self.hear(SECOND)), *voting)

    def vote(self, vote: int) -> None:
        """Vote: how much better the second is than the first."""
        self._answer(lambda around: self.session.answer(vote, around))

    def _show(self) -> None:
        for place, button in enumerate(self.buttons):
            button.setChecked(place == self.session.sounding)
            button.setText(f"{_NAMES[place]}{'  ✓' if place in self.session.heard_whole else ''}")
        for button in self.answer_buttons:
            button.setEnabled(not self.session.why_not_answer())

    def _keys_hint(self) -> str:
        return f"Keys: A plays the first, B the second; 1 to {len(self.votes)} answer; Space plays and pauses."

    def _mode_reason(self, reason: str) -> str:
        return "Both play from the beginning."
