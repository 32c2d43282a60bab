"""Analysis of a take's decoding: tokens along time, acceptance of drafts, and speed-up. Torch-free: everything follows
from the trace of a take."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

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
    """Without the prompts."""
    prompt_seconds: float

    @property
    def tokens_per_pass(self) -> float:
        """E, the committed tokens per target pass, stops included."""
        return (self.tokens + self.stops) / self.passes if self.passes else 0.0

    @property
    def draft_length(self) -> float:
        """K, the mean number of drafted tokens per cycle."""
        return self.drafted / self.passes if self.passes else 0.0

    @property
    def pass_seconds(self) -> float:
        """Seconds of a pass of the target, on average."""
        return self.target_seconds / self.passes if self.passes else 0.0

    @property
    def seconds(self) -> float:
        """Of draft, target and prompts together."""
        return self.draft_seconds + self.target_seconds + self.prompt_seconds

    @property
    def seconds_per_token(self) -> float:
        return self.seconds / (self.tokens + self.stops) if self.tokens else 0.0

    def parts_over(self, plain: Drafting) -> Parts | None:
        """In passes of ``plain``, which drafts nothing; ``None`` without times."""
        unit = plain.pass_seconds
        if not (self.pass_seconds and unit):
            return None
        draft, prompt = self.draft_seconds / max(self.drafted, 1), self.prompt_seconds / self.passes
        return Parts(self.tokens_per_pass, self.draft_length, draft / unit, self.pass_seconds / unit, prompt / unit)


@dataclass(frozen=True)
class Parts:
    """The time of a cycle by part, in passes over one token."""

    tokens: float
    """E, tokens per pass."""
    length: float
    """K, drafted tokens per pass."""
    draft: float
    """c, the time to draft one token."""
    verification: float
    """v, the time of a verifying pass."""
    prompt: float
    """Reading the prompts, which no draft shortens, shared out among the cycles."""

    @property
    def predicted(self) -> float:
        return predicted_speed_up(self.tokens, self.length, self.draft, self.verification)


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
    # The first cycle of a passage reads the prompt, too.
    later = [one.target_seconds for some in trace.passages for one in some[1:]]
    target_seconds = sum(one.target_seconds for one in cycles)
    passing = min(len(cycles) * fmean(later), target_seconds) if later else target_seconds
    return Drafting(
        sum(len(one.tokens) for one in cycles),
        sum(_ended(trace)),
        len(cycles),
        sum(len(one.drafted) for one in cycles),
        sum(one.accepted for one in cycles),
        sum(one.draft_seconds for one in cycles),
        passing,
        target_seconds - passing,
    )


def _ended(trace: DecodingTrace) -> tuple[bool, ...]:
    told = trace.run_away or (False,) * len(trace.passages)
    return tuple(bool(cycles) and not run_away for cycles, run_away in zip(trace.passages, told, strict=True))
