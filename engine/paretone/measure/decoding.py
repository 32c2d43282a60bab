"""Analysis of a take's decoding: tokens along time, acceptance of drafts, and speed-up. Torch-free: everything follows
from the trace of a take."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.measure.estimates import wilson_interval
from paretone.sampling.draft_length import predicted_speed_up
from paretone.setting.take import DecodingTrace

WINDOW = 12
"""Cycles per running mean."""


@dataclass(frozen=True)
class SpokenToken:
    seconds: float
    """Seconds from the beginning of the audio."""
    id: int
    outcome: str
    """One of the outcomes in :mod:`paretone.setting.take`."""
    cycle: int
    rejected: tuple[int, ...] = ()
    """Discarded drafts at this position: the rejected one, then those after it."""


@dataclass(frozen=True)
class PositionAcceptance:
    position: int
    """From 0."""
    proposed: int
    judged: int
    """Drafts with all earlier positions accepted. Token by token, these are what the target judged; a draft verified as
    a whole is judged completely, so there the share only approximates the acceptance."""
    accepted: int

    @property
    def share(self) -> float:
        """Accepted share of the judged drafts; NaN if none was judged."""
        return self.accepted / self.judged if self.judged else float("nan")

    @property
    def reached(self) -> float:
        """Accepted share of the proposed drafts."""
        return self.accepted / self.proposed

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of :attr:`share` (Wilson)."""
        return wilson_interval(self.accepted, self.judged) if self.judged else (float("nan"), float("nan"))


@dataclass(frozen=True)
class Drafting:
    tokens: int
    stops: int
    """Passages that ended by themselves: their stop is a token too, though inaudible."""
    passes: int
    """Passes of the target model."""
    drafted: int
    accepted: int
    draft_seconds: float
    target_seconds: float

    @property
    def tokens_per_pass(self) -> float:
        """E, the committed tokens per target pass, stops included."""
        return (self.tokens + self.stops) / self.passes if self.passes else 0.0

    @property
    def draft_length(self) -> float:
        """K, the mean number of drafted tokens per cycle."""
        return self.drafted / self.passes if self.passes else 0.0

    @property
    def cost_ratio(self) -> float:
        """c, the time to draft one token over the time of one target pass; 0 without drafts."""
        if not self.drafted or not self.target_seconds:
            return 0.0
        return (self.draft_seconds / self.drafted) / (self.target_seconds / self.passes)

    @property
    def seconds_per_token(self) -> float:
        """Seconds per token, draft and target together."""
        return (self.draft_seconds + self.target_seconds) / (self.tokens + self.stops) if self.tokens else 0.0

    @property
    def predicted_speed_up(self) -> float:
        """Speed-up predicted from acceptance and costs, if a pass over a draft takes as long as one over a token."""
        return predicted_speed_up(self.tokens_per_pass, self.draft_length, self.cost_ratio)

    def pass_cost_over(self, other: Drafting) -> float | None:
        """v, the time of one target pass over that of ``other``, which verifies no drafts; ``None`` without times.
        Predicted speed-up divided by v is the measured one."""
        if not (self.target_seconds and other.target_seconds and self.passes and other.passes):
            return None
        return (self.target_seconds / self.passes) / (other.target_seconds / other.passes)

    def speed_up_over(self, other: Drafting) -> float | None:
        """Token rate relative to ``other``; ``None`` without times."""
        mine, theirs = self.seconds_per_token, other.seconds_per_token
        return theirs / mine if mine and theirs else None


def spoken_tokens(trace: DecodingTrace) -> tuple[SpokenToken, ...]:
    cycles, cycle_of = trace.cycles, trace.cycle_of
    found = []
    for index, (seconds, token, outcome, cycle) in enumerate(
        zip(trace.seconds_of, trace.tokens, trace.outcomes, cycle_of, strict=True)
    ):
        last = index + 1 == len(cycle_of) or cycle_of[index + 1] != cycle
        rejected = cycles[cycle].drafted[cycles[cycle].accepted :] if last else ()
        found.append(SpokenToken(seconds, token, outcome, cycle, rejected))
    return tuple(found)


def acceptance_by_position(trace: DecodingTrace) -> tuple[PositionAcceptance, ...]:
    cycles = trace.cycles
    longest = max((len(one.drafted) for one in cycles), default=0)
    return tuple(
        PositionAcceptance(
            position,
            sum(len(one.drafted) > position for one in cycles),
            sum(len(one.drafted) > position and one.accepted >= position for one in cycles),
            sum(one.accepted > position for one in cycles),
        )
        for position in range(longest)
    )


def running_tokens_per_pass(trace: DecodingTrace, window: int = WINDOW) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times in the audio (seconds), and committed tokens per pass over the last ``window`` cycles."""
    ends, counts = [], []
    for start, cycles, ended in zip(trace.starts, trace.passages, _ended(trace), strict=True):
        spoken = 0
        for index, one in enumerate(cycles, start=1):
            spoken += len(one.tokens)
            ends.append(start + spoken / trace.token_rate)
            counts.append(len(one.tokens) + (ended and index == len(cycles)))
    means = [
        sum(counts[max(0, index + 1 - window) : index + 1]) / min(index + 1, window) for index in range(len(counts))
    ]
    return tuple(ends), tuple(means)


def drafting(trace: DecodingTrace) -> Drafting:
    cycles = trace.cycles
    return Drafting(
        sum(len(one.tokens) for one in cycles),
        sum(_ended(trace)),
        len(cycles),
        sum(len(one.drafted) for one in cycles),
        sum(one.accepted for one in cycles),
        sum(one.draft_seconds for one in cycles),
        sum(one.target_seconds for one in cycles),
    )


def _ended(trace: DecodingTrace) -> tuple[bool, ...]:
    told = trace.run_away or (False,) * len(trace.passages)
    return tuple(bool(cycles) and not run_away for cycles, run_away in zip(trace.passages, told, strict=True))
