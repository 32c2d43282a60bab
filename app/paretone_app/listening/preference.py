"""Preference tests: which of two sounds is better, for one pair of settings or for a ranking of several."""

from collections.abc import Sequence
from math import ceil

from paretone.listening.statistics import pairs
from paretone.listening.trials import CCR, RecordError, TrialConditions, TrialRecord
from paretone_app.listening.session import ListeningSession, Planned

FEWEST_SENTENCES = 10
"""With fewer, the result holds only for these sentences."""
FIRST, SECOND = range(2)
CATEGORIES = {
    3: "Much better",
    2: "Better",
    1: "Slightly better",
    0: "About the same",
    -1: "Slightly worse",
    -2: "Worse",
    -3: "Much worse",
}
"""Rating of the second against the first (ITU-T P.800, annex E)."""
CHOICES = {-1: "The first is better", 0: "No preference", 1: "The second is better"}


class PairsSession(ListeningSession):
    """Base of tests that ask which of two sounds is better."""

    @property
    def votes(self) -> dict[int, str]:
        return CHOICES

    def why_not_answer(self) -> str:
        missing = [name for button, name in ((FIRST, "first"), (SECOND, "second")) if button not in self.heard_whole]
        return f"Listen to the {' and the '.join(missing)} to the end first." if missing else ""

    def answer(self, vote: int, around: TrialConditions) -> TrialRecord | None:
        """Vote how much better the second is than the first. Raises :class:`RecordError` before both were heard."""
        if vote not in self.votes:
            raise ValueError(f"there is no vote {vote}")
        return self._answered({"vote": vote}, around)


class PreferenceSession(PairsSession):
    """``trials`` pairs, spread evenly over the items, half in either order; plus a tenth repeated in swapped order."""

    def _require_settings(self) -> None:
        if any(len(one.stimuli) != 2 for one in self.items):
            raise RecordError("A preference is between exactly two settings; tick two.")

    @property
    def votes(self) -> dict[int, str]:
        return CATEGORIES if self.method == CCR else super().votes

    def _plan(self) -> Sequence[Planned]:
        pairs = [Planned(item, order) for item, order in self._balanced()]
        for first in sorted(self._shuffled(len(pairs))[: ceil(0.1 * len(pairs))], reverse=True):
            # After the pair itself, from the back, so that earlier places remain valid.
            place = self._chance.randrange(first + 1, len(pairs) + 1)
            pairs.insert(place, Planned(pairs[first].item, pairs[first].order[::-1], repeat=True))
        return pairs

    def _balanced(self) -> list[tuple[int, tuple[int, ...]]]:
        """An order per trial: within each item, and overall, half in either order, give or take one."""
        spread = self._spread(self._trials)
        turns = [(0, 1), (1, 0)]
        self._chance.shuffle(turns)
        places: dict[int, list[int]] = {}
        for place, item in enumerate(spread):
            places.setdefault(item, []).append(place)
        orders: dict[int, tuple[int, ...]] = {}
        odd = 0
        for own in places.values():
            self._chance.shuffle(own)
            for turn, place in enumerate(own):
                orders[place] = turns[(turn + odd) % 2]
            # Alternate the surplus order of items with an odd number of trials.
            odd += len(own) % 2
        return [(item, orders[place]) for place, item in enumerate(spread)]


FEWEST_RANKED, MOST_RANKED = 3, 12


class RankingSession(PairsSession):
    """``trials`` pairs, spread evenly over the items: every pair of settings once before any repeats, either setting
    first equally often, give or take one."""

    def _require_settings(self) -> None:
        counts = {len(one.stimuli) for one in self.items}
        if len(counts) != 1 or not FEWEST_RANKED <= min(counts) <= MOST_RANKED:
            raise RecordError(
                f"A ranking is of {FEWEST_RANKED} to {MOST_RANKED} settings, each of which has spoken every sentence."
            )

    def _plan(self) -> Sequence[Planned]:
        found: list[tuple[int, int]] = []
        while len(found) < self._trials:
            found += pairs(len(self.items[0].stimuli), self._chance.getrandbits(32))
        return [Planned(item, order) for item, order in zip(self._spread(self._trials), found, strict=False)]
