"""The page of ABX."""

from __future__ import annotations

from paretone_app.features.lab.two_answers import TwoAnswersPage
from paretone_app.listening.abx import AbxSession
from paretone_app.listening.wording import signed


class AbxPage(TwoAnswersPage):
    """Hear A, B and X in any order, then say what X is."""

    session: AbxSession
    name = "ABX"
    asked = "X is A or B. Which one?"
    sounds = (("A", "A"), ("B", "B"), ("X", "X"))
    said = ("X is A", "X is B")

    def _known_gains(self) -> str:
        gains = [signed(one.record.gain, "+") for one in self.session.item.stimuli]
        return f": A {gains[0]} dB, B {gains[1]} dB"
