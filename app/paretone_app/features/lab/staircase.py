"""The page of a staircase."""

from __future__ import annotations

from paretone_app.features.lab.two_answers import TwoAnswersPage
from paretone_app.listening.staircase import StaircaseSession


class StaircasePage(TwoAnswersPage):
    """Hear the reference, A and B in any order, then say which of the two is not the reference."""

    session: StaircaseSession
    name = "Staircase"
    asked = "A or B is the reference again. Which one is not?"
    sounds = (("Reference", "R"), ("A", "A"), ("B", "B"))
    said = ("A is not the reference", "B is not the reference")
