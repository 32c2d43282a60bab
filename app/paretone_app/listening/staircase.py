"""Staircase: from which speed-up on is a difference heard? The listener says which of A and B is not the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paretone.listening.statistics import TRIALS, Staircase
from paretone.listening.trials import STAIRCASE, RecordError, TrialConditions, TrialRecord
from paretone_app.listening.session import ListeningSession, Planned
from paretone_app.listening.stimuli import PreparedItem

REFERENCE, A, B = range(3)
FEWEST, MOST = 3, 24


class StaircaseSession(ListeningSession):
    """``trials`` trials, spread evenly over the items, each at the place determined by the answers before. The first
    stimulus of each item is the reference, the others are the row, closest to it first. ``scale`` gives a rising value
    for each setting of the row, stored in the trials. Practice is at the far end."""

    def __init__(
        self, items: Sequence[PreparedItem], listener: str, scale: Sequence[float], trials: int = TRIALS, **given: Any
    ) -> None:
        self._scale = list(scale)
        self._stairs = Staircase(len(self._scale))
        super().__init__(items, listener, STAIRCASE, trials, **given)

    def _require_settings(self) -> None:
        if any(len(one.stimuli) != len(self._scale) + 1 for one in self.items):
            raise RecordError("A staircase needs the reference and every setting of its row in each sentence.")

    def _plan(self) -> Sequence[Planned]:
        # The place on the row is set when the trial begins.
        return [Planned(item, (0, 0, len(self._scale))) for item in self._spread(self._trials)]

    def _begin(self) -> None:
        super()._begin()
        if self.waiting:
            trial = self.waiting[0]
            place = len(self._scale) if trial.practice else 1 + self._stairs.place
            pair = (0, place) if self._chance.randrange(2) else (place, 0)
            self.waiting[0] = replace(trial, order=(0, *pair))

    def why_not_answer(self) -> str:
        missing = [name for button, name in ((A, "A"), (B, "B")) if button not in self.heard]
        return f"Listen to {' and '.join(missing)} first." if missing else ""

    def feedback(self, answer: Mapping[str, Any]) -> str:
        was = 0 if self.trial.order[A] else 1
        return f"{'AB'[was]} was not the reference: {'right' if answer['said'] == was else 'wrong'}."

    def answer(self, said: int, around: TrialConditions) -> TrialRecord | None:
        """Answer that A (0) or B (1) is not the reference. Raises :class:`RecordError` before both were heard."""
        if said not in (0, 1):
            raise ValueError(f"the other is A (0) or B (1), not {said}")
        if problem := self.why_not_answer():
            raise RecordError(problem)
        if not self.practising and not around.underruns:
            self._stairs.answer(self.trial.order[A + said] > 0)
        return self._answered({"said": said, "scale": self._scale}, around)
