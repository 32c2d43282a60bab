"""Results of listening tests in words: finding, certainty, limits."""

from collections.abc import Callable
from functools import partial

from paretone.listening import statistics
from paretone.listening.results import (
    AbxResult,
    MosResult,
    MushraResult,
    PreferenceResult,
    RankingResult,
    Result,
    StaircaseResult,
)
from paretone.listening.statistics import MeanInterval, Noticeable
from paretone_app.numbers import counted, fixed, localised, percent, times, with_sign

_HIGH = 80
"""MUSHRA is meant for ratings below this."""


def headline(result: Result) -> str:
    if isinstance(result, AbxResult):
        said = "A difference was heard" if result.heard else "No difference was shown"
        return f"{said}: {result.hits} of {result.trials} right, p = {probability(result.p)}."
    if isinstance(result, PreferenceResult):
        first, second = result.titles
        if result.sign.p > statistics.LEVEL:
            return f"No preference was shown between {first} and {second}, p = {probability(result.sign.p)}."
        better = second if result.sign.better > result.sign.worse else first
        return f"{better} was preferred, p = {probability(result.sign.p)}."
    if isinstance(result, StaircaseResult):
        return _first_heard(result, result.median)
    if isinstance(result, RankingResult):
        (title, first_ranked), *_ = result.ranked
        if first_ranked.best < 1 - statistics.LEVEL:
            return f"No setting was shown to be preferred to all others; {title} is ahead."
        return f"{title} was preferred to all others (with {percent(first_ranked.best)} probability)."
    if isinstance(result, MosResult):
        return _opinion(result)
    worse = [one.condition for one in result.differences if one.p <= statistics.LEVEL and one.difference.mean < 0]
    if not result.summaries:
        return "No listener passed post-screening, so there is no result."
    if worse:
        return f"Rated below the hidden reference: {', '.join(worse)}."
    return "No setting was shown to be rated below the hidden reference."


def details(result: Result) -> tuple[str, ...]:
    if isinstance(result, AbxResult):
        return _abx(result)
    if isinstance(result, StaircaseResult):
        return _staircase(result)
    if isinstance(result, RankingResult):
        return _ranking(result)
    if isinstance(result, MosResult):
        return _mos(result)
    return _preference(result) if isinstance(result, PreferenceResult) else _mushra(result)


def _abx(result: AbxResult) -> tuple[str, ...]:
    made = [
        f"A was {result.titles[0]}, B was {result.titles[1]}.",
        f"Right in {interval(result.rate, percent)} of the trials{_of(result.listeners)}. "
        + (f"{result.needed} were needed at the 5 % level." if result.needed is not None else ""),
    ]
    if not result.heard:
        rate = result.smallest_detectable
        made.append(
            "This does not mean that the two are identical. "
            + (
                f"A test of {result.trials} trials detects, with 80 % probability, listeners who are right in "
                f"{percent(rate)} of them or more, but not smaller differences."
                if rate is not None
                else f"{result.trials} trials are too few to show anything."
            )
        )
    return tuple(made)


def _preference(result: PreferenceResult) -> tuple[str, ...]:
    first, second = result.titles
    name, scale = ("CMOS", "−3 to 3") if result.graded else ("Mean vote", "−1 to 1")
    sign = result.sign
    made = [
        f"{name} of {second} against {first}: {interval(result.mean, _two_digits)} on a scale of {scale}"
        f"{_of(result.listeners)}.",
        f"{second} was better {sign.better} times, {first} {sign.worse} times; {counted(sign.ties, 'tie', 'ties')} "
        "excluded from the sign test.",
        f"Heard first won {result.first} times, heard second {result.second} times: "
        + (
            f"the order mattered (p = {probability(result.order_p)}), which balanced orders even out."
            if result.order_p <= statistics.LEVEL
            else f"no order bias was shown (p = {probability(result.order_p)})."
        ),
    ]
    if result.repeats:
        made.append(
            f"{counted(result.repeats, 'swapped repeat', 'swapped repeats')}: {result.consistent} did not contradict "
            "the first answer."
        )
    return tuple(made)


def _first_heard(result: StaircaseResult, found: Noticeable) -> str:
    """The speed-up from which on a difference is heard, as a sentence."""
    last = result.scale[-1]
    if found.value > last:
        return f"No difference was heard every second time, up to {speed_up(last)} as fast ({result.titles[-1]})."
    interval = f"95 % interval {_within(result, found.low)} to {_within(result, found.high)}"
    if found.value < result.scale[0]:
        return f"A difference is heard even at {speed_up(result.scale[0])} as fast ({result.titles[0]}); {interval}."
    return f"A difference is heard every second time from {speed_up(found.value)} as fast on ({interval})."


def _staircase(result: StaircaseResult) -> tuple[str, ...]:
    made = [
        f"The reference was {result.reference}.",
        "Heard every second time means right in three of four trials: half of those that are not heard are guessed.",
    ]
    if len(result.noticeable) > 1:
        made[0] += f" The headline is of the listener in the middle of {len(result.noticeable)}."
        made += [f"Listener {listener}: {_first_heard(result, one)}" for listener, one in result.noticeable]
    beyond = result.median.beyond
    if 0.025 < beyond < 0.975:
        made.append(f"With {percent(beyond)} probability it is beyond the fastest setting of the row.")
    return tuple(made)


def _ranking(result: RankingResult) -> tuple[str, ...]:
    return (
        f"{counted(result.comparisons, 'comparison', 'comparisons')}, {counted(result.ties, 'tie', 'ties')}"
        f"{_of(result.listeners)}.",
        "Strength: log odds of being preferred to the average of these settings (Bradley–Terry), with its 95 % "
        "interval; a tie counts half for either.",
        f"Heard first won {result.first} times, heard second {result.second} times "
        f"(p = {probability(result.order_p)}).",
    )


def _opinion(result: MosResult) -> str:
    """Which settings were rated otherwise than the first, as a sentence."""
    first = result.summaries[0]
    if not result.differences:
        return f"{first.condition}: MOS {interval(first.mean, partial(fixed, places=2))}."
    apart = [one for one in result.differences if one.p <= statistics.LEVEL]
    below = ", ".join(one.condition for one in apart if one.difference.mean < 0)
    above = ", ".join(one.condition for one in apart if one.difference.mean > 0)
    if not below and not above:
        return f"No setting was shown to be rated otherwise than {first.condition}."
    sides = (("below", below), ("above", above))
    return f"Rated {'; '.join(f'{side} {first.condition}: {ones}' for side, ones in sides if ones)}."


def _mos(result: MosResult) -> tuple[str, ...]:
    return (
        *(
            f"{one.condition} against {one.than}, on the same sentences: {interval(one.difference, _two_digits)}, "
            f"p = {probability(one.p)} (Holm-adjusted)."
            for one in result.differences
        ),
        f"{counted(result.votes, 'vote', 'votes')} by {_listeners(result.listeners)}; intervals are over listeners and "
        "sentences, with one listener over sentences only. 5 is excellent, 1 is bad.",
    )


def _within(result: StaircaseResult, value: float) -> str:
    """An end of an interval, limited to the range of the row."""
    if value > result.scale[-1]:
        return f"more than {speed_up(result.scale[-1])}"
    return f"less than {speed_up(result.scale[0])}" if value < result.scale[0] else speed_up(value)


def _mushra(result: MushraResult) -> tuple[str, ...]:
    made = [f"The reference was the unaccelerated output ({result.reference}), not human speech."]
    for one in result.differences:
        made.append(
            f"{one.condition} against the hidden reference: {interval(one.difference, _one_digit)} points, "
            f"p = {probability(one.p)} (Holm-adjusted)."
        )
    for screened in result.screenings:
        if screened.excluded:
            made.append(
                f"Listener {screened.listener} is excluded by post-screening: the hidden reference was rated below "
                f"{statistics.REFERENCE_FLOOR} in {screened.reference_missed} and the 7 kHz anchor above "
                f"{statistics.ANCHOR_CEILING} in {screened.anchor_missed} of {screened.items} pages; "
                f"{percent(statistics.SCREENED_SHARE)} are allowed."
            )
    if result.indistinct:
        made.append(
            f"{counted(result.indistinct, 'sentence', 'sentences')} excluded nobody by the 7 kHz anchor: more than "
            f"{percent(statistics.INDISTINCT_SHARE)} of the listeners rated it above {statistics.ANCHOR_CEILING} there."
        )
    rated = {one.condition for one in result.differences}
    high = [one.median >= _HIGH for one in result.summaries if one.condition in rated]
    if sum(high) > len(high) / 2:
        made.append(
            f"Most settings were rated {_HIGH} or more. BS.1534-3 doubts such tests, because they hardly separate good "
            "settings; use ABX."
        )
    made.append(f"{counted(result.pages, 'page', 'pages')} by {_listeners(len(result.screenings))}.")
    return tuple(made)


def interval(one: MeanInterval, shown: Callable[[float], str]) -> str:
    """A mean with its interval, formatted by ``shown``, and n."""
    return f"{shown(one.mean)} (95 % interval {shown(one.low)} to {shown(one.high)}, n = {one.n})"


def speed_up(value: float) -> str:
    """Speed-up factor from its log2."""
    return times(2**value)


_one_digit, _two_digits = partial(with_sign, plus="+"), partial(with_sign, plus="+", digits=2)


def probability(p: float) -> str:
    """A p value, never shown as 0."""
    return fixed(p, 3) if p >= 0.001 else localised(f"{p:.1e}")


def _of(listeners: int) -> str:
    return "" if listeners == 1 else f", {_listeners(listeners)}"


def _listeners(count: int) -> str:
    return "one listener" if count == 1 else f"{count} listeners"
