"""Planning a listening test: conditions, sentences, number of trials, and objections. No Qt, no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import TypeVar

import numpy as np

from paretone.listening import statistics
from paretone.listening.statistics import TRIALS
from paretone.listening.trials import (
    ABX,
    CCR,
    METHODS,
    MOS,
    MUSHRA,
    NATURALNESS,
    PREFERENCE,
    RANKING,
    SIMILARITY,
    STAIRCASE,
    new_name,
)
from paretone_app.listening.abx import DEFAULT_TRIALS, AbxSession
from paretone_app.listening.mos import MosSession
from paretone_app.listening.mushra import MushraSession
from paretone_app.listening.preference import (
    FEWEST_RANKED,
    FEWEST_SENTENCES,
    MOST_RANKED,
    PreferenceSession,
    RankingSession,
)
from paretone_app.listening.session import ListeningSession
from paretone_app.listening.staircase import FEWEST, MOST, StaircaseSession
from paretone_app.listening.stimuli import MOST_SLIDERS, Condition, Item, PreparedItem
from paretone_app.listening.wording import speed_up
from paretone_app.numbers import counted, fixed, percent

TITLES: Mapping[str, str] = {
    ABX: "ABX: is there any audible difference?",
    CCR: "CMOS: which is better, and by how much?",
    PREFERENCE: "Preference: which is better?",
    MUSHRA: "MUSHRA: how far below the reference is each?",
    STAIRCASE: "Staircase: from where on is it heard?",
    RANKING: "Ranking: which of several is preferred?",
    NATURALNESS: "MOS: how natural does each sound?",
    SIMILARITY: "MOS: how much like the voice is each?",
}
assert tuple(TITLES) == METHODS
EXPLANATIONS: Mapping[str, str] = {
    ABX: "X is A or B, drawn independently per trial. Say which. Two settings; the number of trials is fixed and "
    "the score stays hidden until the end.",
    CCR: "Pairs in balanced order; say how much better the second is than the first, from −3 to 3 (ITU-T P.800). A "
    "tenth of the pairs comes again, swapped.",
    PREFERENCE: "Pairs in balanced order; say which is better, or neither. A tenth of the pairs comes again, swapped.",
    MUSHRA: "Rate every setting from 0 to 100 against a hidden reference and two anchors (ITU-R BS.1534-3). The "
    "reference is the unaccelerated output of the same model, not human speech.",
    STAIRCASE: "A or B is the reference again; say which of the two is not. Three right answers lead closer to the "
    "reference, a wrong one to a faster setting (3 down, 1 up). The result is the speed-up from which on a difference "
    "is heard.",
    RANKING: "Pairs of the settings, every pair as often as the others; say which is better, or neither. The result is "
    "a ranking by preference (Bradley–Terry) with intervals.",
    NATURALNESS: "Rate one sound at a time from 1 (bad) to 5 (excellent), without a reference (ITU-T P.800, absolute "
    "category rating). Scores depend on what else the test plays: compare within one test.",
    SIMILARITY: "Hear the voice's recording, then rate from 1 (bad) to 5 (excellent) how much like it each sound is. "
    "Scores depend on what else the test plays: compare within one test.",
}
DEFAULT_LENGTH: Mapping[str, int] = {
    ABX: DEFAULT_TRIALS,
    CCR: FEWEST_SENTENCES,
    PREFERENCE: FEWEST_SENTENCES,
    MUSHRA: 8,
    STAIRCASE: TRIALS,
    RANKING: 30,
    NATURALNESS: 20,
    SIMILARITY: 20,
}
DEFAULT_PRACTICE: Mapping[str, int] = {one: 2 if one in (ABX, STAIRCASE, *MOS) else 1 for one in METHODS}
"""Practice trials, or pages."""
_SESSIONS: Mapping[str, type[ListeningSession]] = {
    ABX: AbxSession,
    CCR: PreferenceSession,
    PREFERENCE: PreferenceSession,
    MUSHRA: MushraSession,
    RANKING: RankingSession,
    NATURALNESS: MosSession,
    SIMILARITY: MosSession,
}
NOTHING_IN_COMMON = (
    "No sentence was spoken by all ticked settings in one voice from one seed. Speak one with each of them, or compare "
    "A and B."
)
LONGEST = 200
LONGEST_PRACTICE = 10
_PEEKING_FROM, _PEEKING_TO = 5, 40
_FEW_TRIALS = 30
"""For a staircase: with fewer trials, its interval is about as wide as the row."""
_ROUNDS = 4
"""For a ranking: with fewer trials per pair, the result is largely chance."""

_One = TypeVar("_One")


@dataclass(frozen=True)
class ListeningPlan:
    method: str
    conditions: tuple[Condition, ...]
    """The unaccelerated first: A of pairs, MUSHRA's and staircases' reference; a staircase's row by rising speed."""
    items: tuple[Item, ...]
    length: int
    """Trials, or pages of MUSHRA, at most one per item."""
    listener: str = ""
    practice: int = 0
    """Practice trials, or pages, before the test; not scored."""

    @property
    def used(self) -> tuple[Item, ...]:
        if self.method in MOS:
            return self.items[: math.ceil(self.length / max(1, len(self.conditions)))]
        return self.items[: self.length]

    @property
    def roles(self) -> tuple[str, ...]:
        if self.method == MUSHRA:
            return ("Reference", *("Rated",) * (len(self.conditions) - 1))
        if self.method == STAIRCASE:
            return ("Reference", *map(speed_up, self.scale))
        if self.method == RANKING:
            return ("Compared",) * len(self.conditions)
        if self.method in MOS:
            return ("Rated",) * len(self.conditions)
        return ("A", "B")

    @property
    def scale(self) -> tuple[float, ...]:
        """log2 of the speed-up of every condition after the first over the first; means over the items."""
        factors = np.log2([one.real_time_factors for one in self.items])
        return tuple((factors[:, :1] - factors[:, 1:]).mean(0).tolist())

    def why_not(self) -> str:
        """Why the test cannot begin, as a sentence, or ``""``."""
        count = len(self.conditions)
        if self.method == STAIRCASE:
            return self._why_no_row()
        if self.method == RANKING:
            if not FEWEST_RANKED <= count <= MOST_RANKED:
                return f"Tick {FEWEST_RANKED} to {MOST_RANKED} settings to rank; {count} are ticked."
        elif self.method == MUSHRA:
            plain = [one for one in self.conditions if not one.accelerated]
            if len(plain) != 1:
                return "Tick one unaccelerated setting as the reference, and the settings to compare with it."
            if any(one.setting.model != plain[0].setting.model for one in self.conditions):
                return "Tick settings of one model: the reference is that model's unaccelerated output."
            if count < 2:
                return "Tick at least one more setting to compare with the reference."
            if count + 2 > MOST_SLIDERS:
                return f"Tick {MOST_SLIDERS - 2} settings at most: with the two anchors a page is full."
        elif self.method in MOS:
            if not count:
                return "Tick the settings to rate."
        elif count != 2:
            return f"Tick exactly two settings to compare; {count} are ticked."
        return "" if self.items else NOTHING_IN_COMMON

    def _why_no_row(self) -> str:
        plain = [one for one in self.conditions if not one.accelerated]
        row = len(self.conditions) - 1
        if len(plain) != 1 or not FEWEST <= row <= MOST:
            return (
                f"Tick one unaccelerated setting as the reference, and {FEWEST} to {MOST} faster ones as the row along "
                "which to listen."
            )
        if any(one.setting.model != plain[0].setting.model for one in self.conditions):
            return "Tick settings of one model: the reference is that model's unaccelerated output."
        if not self.items:
            return NOTHING_IN_COMMON
        if min(min(one.real_time_factors) for one in self.items) <= 0:
            return "A take has no real-time factor, so that the row has no order; speak it again."
        if any(one >= two for one, two in pairwise(self.scale)):
            return "Two settings of the row are equally fast; untick one of them."
        return ""

    def remarks(self) -> tuple[str, ...]:
        made = []
        sentences = len(self.used)
        if self.method == ABX:
            made.append(_abx_remark(self.length))
        elif self.method == STAIRCASE:
            if self.length < _FEW_TRIALS:
                made.append(f"Fewer than {_FEW_TRIALS} trials leave a wide interval; take {TRIALS}.")
        elif self.method == RANKING:
            every = len(self.conditions) * (len(self.conditions) - 1) // 2
            if self.length < _ROUNDS * every:
                made.append(
                    f"There are {counted(every, 'pair', 'pairs')}: with fewer than {_ROUNDS} trials of each "
                    f"({_ROUNDS * every}) the intervals are wide."
                )
        elif sentences < FEWEST_SENTENCES and self.method != MUSHRA:
            made.append(
                f"Only {counted(sentences, 'sentence', 'sentences')}: the result hardly generalises. "
                f"Use {FEWEST_SENTENCES} or more."
            )
        elif sentences < DEFAULT_LENGTH[MUSHRA] and self.method == MUSHRA:
            made.append(
                f"Only {counted(sentences, 'page', 'pages')}: one slip decides whether a listener passes "
                "post-screening."
            )
        if self.method == MUSHRA and not self.practice:
            made.append("BS.1534-3 requires training: skip practice only for trained listeners.")
        # The smallest p value of the randomisation test, if every page of one listener agrees.
        smallest_p = 2 * 0.5 ** len(self.used) * (len(self.conditions) - 1)
        if self.method == MUSHRA and smallest_p > statistics.LEVEL:
            made.append(
                f"One listener's {counted(sentences, 'page', 'pages')} cannot show anything at the 5 % level about "
                f"{counted(len(self.conditions) - 1, 'setting', 'settings')}: take more, or ask more listeners."
            )
        return tuple(made)

    def session(self, prepared: Sequence[PreparedItem]) -> ListeningSession:
        """The session on the prepared items. Raises :class:`PlainError` if it is not possible."""
        listener = self.listener or new_name()
        if self.method == STAIRCASE:
            return StaircaseSession(prepared, listener, self.scale, self.length, practice=self.practice)
        return _SESSIONS[self.method](prepared, listener, self.method, self.length, practice=self.practice)


def planned(
    method: str, ticked: Sequence[Condition], items: Sequence[Item], length: int, listener: str = "", practice: int = 0
) -> ListeningPlan:
    """The plan for the ``ticked`` conditions and their common ``items``, with takes in the order of ``ticked``."""

    def slowness(place: int) -> float:
        """Sort key of staircase rows, consistent with :attr:`ListeningPlan.scale`; 0 for other methods."""
        if method != STAIRCASE or not items:
            return 0.0
        factors = [one.real_time_factors[place] for one in items]
        return -fmean(map(math.log2, factors)) if min(factors) > 0 else -math.inf

    order = sorted(range(len(ticked)), key=lambda place: (ticked[place].accelerated, slowness(place)))

    def ordered(values: tuple[_One, ...]) -> tuple[_One, ...]:
        return tuple(values[place] for place in order)

    found = tuple(
        replace(
            one,
            takes=ordered(one.takes),
            fingerprints=ordered(one.fingerprints),
            real_time_factors=ordered(one.real_time_factors),
        )
        for one in items
    )
    return ListeningPlan(method, ordered(tuple(ticked)), found, length, listener, practice)


def _abx_remark(trials: int) -> str:
    needed = statistics.needed(trials)
    if needed is None:
        return f"{counted(trials, 'trial', 'trials')} cannot show anything at the 5 % level; take at least 5."
    rate, found = statistics.smallest_detectable(trials), ""
    if rate is not None:
        found = f"Detected with 80 % probability: listeners who are right in {percent(rate)} of the trials or more. "
    peeking = statistics.peeking_rate(_PEEKING_FROM, _PEEKING_TO)
    return (
        f"{needed} of {trials} must be right (guessing does that with p = "
        f"{fixed(statistics.at_least(needed, trials), 3)}). {found}The number "
        f"stays fixed: checking after every trial from {_PEEKING_FROM} to {_PEEKING_TO} and stopping at the first "
        f"good score is wrong in {percent(peeking)} instead of 5 %."
    )
