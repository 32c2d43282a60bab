"""ABX: is there an audible difference? X is A or B, and the listener says which."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretone.listening.trials import RecordError, TrialConditions, TrialRecord
from paretone_app.listening.session import ListeningSession, Planned

DEFAULT_TRIALS = 16
A, B, X = range(3)


class AbxSession(ListeningSession):
    """``trials`` trials, spread evenly over the items; X is drawn independently for each."""

    def _require_settings(self) -> None:
        if any(len(one.stimuli) != 2 for one in self.items):
            raise RecordError("ABX compares exactly two settings; tick two.")

    def _plan(self) -> Sequence[Planned]:
        return [self._again(Planned(item, (0, 1, 0))) for item in self._spread(self._trials)]

    def _again(self, trial: Planned) -> Planned:
        return Planned(trial.item, (0, 1, self._chance.randrange(2)))

    def why_not_answer(self) -> str:
        return "" if X in self.heard else "Listen to X first."

    def feedback(self, answer: Mapping[str, Any]) -> str:
        was = self.trial.order[X]
        return f"X was {'AB'[was]}: {'right' if answer['said'] == was else 'wrong'}."

    def answer(self, said: int, around: TrialConditions) -> TrialRecord | None:
        """Answer that X is ``A`` or ``B``. Raises :class:`RecordError` before X was heard."""
        if said not in (A, B):
            raise ValueError(f"X is A or B, not {said}")
        return self._answered({"said": said}, around)
