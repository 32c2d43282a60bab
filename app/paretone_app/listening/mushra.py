"""MUSHRA (ITU-R BS.1534-3): how far below the reference is each? One page per sentence, one slider per sound: the
settings, the hidden reference and the two anchors, in random order. The reference is the *unaccelerated output* of the
same model, not human speech: 100 means "as good as without acceleration"."""

from collections.abc import Mapping, Sequence
from typing import Any

from paretone.listening import trials
from paretone.listening.trials import RecordError, TrialConditions, TrialRecord
from paretone_app.listening.session import ListeningSession, Planned
from paretone_app.listening.stimuli import MOST_SLIDERS

REFERENCE = 0
"""Button of the labelled reference; the sliders follow it."""
LABELS = ("Bad", "Poor", "Fair", "Good", "Excellent")
"""Labels of the fifths of the scale, lowest first."""
HIGHEST = 100
SHORTEST_LOOP_SECONDS = 0.5


class MushraSession(ListeningSession):
    """One page per item, in random order. The first stimulus of each item is the reference."""

    def _require_settings(self) -> None:
        if any(len(one.stimuli) > MOST_SLIDERS for one in self.items):
            raise RecordError(f"A page of MUSHRA holds {MOST_SLIDERS} sounds at most; tick fewer settings.")

    def _plan(self) -> Sequence[Planned]:
        return [self._page(item) for item in self._shuffled(len(self.items))]

    def _again(self, trial: Planned) -> Planned:
        return self._page(trial.item)

    def _page(self, item: int) -> Planned:
        return Planned(item, (0, *self._shuffled(len(self.items[item].stimuli))))

    def _begin(self) -> None:
        super()._begin()
        self.ratings: dict[int, int] = {}

    @property
    def sliders(self) -> range:
        return range(REFERENCE + 1, len(self.trial.order))

    def may_rate(self, button: int) -> bool:
        """Whether ``button`` can be rated now: only the sound being heard can."""
        return button in self.sliders and button == self.sounding

    def rate(self, button: int, score: int) -> None:
        """Rate ``button``. Raises :class:`RecordError` unless its sound is being heard."""
        if not self.may_rate(button):
            raise RecordError("Only the sound that is heard can be rated.")
        if not 0 <= score <= HIGHEST:
            raise ValueError(f"a rating is between 0 and {HIGHEST}, not {score}")
        self.ratings[button] = score

    def why_not_answer(self) -> str:
        if REFERENCE not in self.heard:
            return "Listen to the reference first."
        missing = [str(button) for button in self.sliders if button not in self.ratings]
        return f"Still to be rated: {', '.join(missing)}." if missing else ""

    def feedback(self, answer: Mapping[str, Any]) -> str:
        """Positions of reference and anchors; the settings stay hidden."""
        hidden = {one.record.key: place for place, one in enumerate(self.item.stimuli)}
        at = {key: self.trial.order.index(place, REFERENCE + 1) for key, place in hidden.items()}
        reference = at[self.item.stimuli[REFERENCE].record.key]
        cut = [f"sound {at[key]} the anchor cut at {limit}" for key, limit in trials.LIMITS.items() if key in at]
        return f"{', '.join([f'Sound {reference} was the reference itself', *cut])}."

    def answer(self, around: TrialConditions) -> TrialRecord | None:
        """Finish the page. Raises :class:`RecordError` before everything is rated."""
        by_stimulus = [0] * len(self.item.stimuli)
        for button, score in self.ratings.items():
            by_stimulus[self.trial.order[button]] = score
        return self._answered({"ratings": by_stimulus}, around)
