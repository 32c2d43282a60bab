"""Mean opinion scores (ITU-T P.800, absolute category rating): how natural a sound is, or how much like the voice."""

from collections.abc import Sequence
from math import ceil

from paretone.listening.trials import SIMILARITY, TrialConditions, TrialRecord
from paretone_app.listening.session import ListeningSession, Planned

CATEGORIES = {1: "Bad", 2: "Poor", 3: "Fair", 4: "Good", 5: "Excellent"}
"""The listening-quality scale of P.800, annex B."""


class MosSession(ListeningSession):
    """``trials`` sounds in random order, each heard whole and rated once: of every sentence all settings, so that
    settings can be compared within sentences. For similarity the voice's recording, the last stimulus, comes first."""

    @property
    def votes(self) -> dict[int, str]:
        return CATEGORIES

    def _plan(self) -> Sequence[Planned]:
        if not self.items:
            return []
        against = (len(self.items[0].stimuli) - 1,) if self.method == SIMILARITY else ()
        rated = len(self.items[0].stimuli) - len(against)
        sentences = self._spread(ceil(self._trials / rated))
        found = [Planned(item, (*against, place)) for item in sentences for place in self._shuffled(rated)]
        found = found[: self._trials]
        self._chance.shuffle(found)
        return found

    def why_not_answer(self) -> str:
        if len(self.heard_whole) == len(self.trial.order):
            return ""
        return f"Listen to the {'voice and the speech' if self.method == SIMILARITY else 'speech'} to the end first."

    def answer(self, vote: int, around: TrialConditions) -> TrialRecord | None:
        """Rate the sound from 1 to 5. Raises :class:`RecordError` before it was heard whole."""
        if vote not in CATEGORIES:
            raise ValueError(f"there is no vote {vote}")
        return self._answered({"vote": vote}, around)
