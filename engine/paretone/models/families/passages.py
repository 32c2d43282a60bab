"""Passages: from a text and a voice to audio, and the decoders that make their tokens heard."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from paretone.errors import PlainError
from paretone.models.families.pacing import Pace
from paretone.sampling.flow import Follow
from paretone.setting.take import Measurements, Trace


class Prompt(Protocol):
    @property
    def notes(self) -> tuple[str, ...]: ...


class FlowPrompt(Prompt, Protocol):
    """A voice made ready for a flow model."""

    @property
    def frames(self) -> int:
        """Frames that it takes in front of the new speech."""


class Passage(Protocol):
    """One piece of text, ready to be spoken."""

    @property
    def text(self) -> str: ...


class FramedPassage(Passage, Protocol):
    """One piece of text, ready for a model that knows beforehand how long it will be."""

    @property
    def frames(self) -> int:
        """Frames to sample, those of a flow model's prompt included; at least 1."""


class LanguagePassage(Passage, Protocol):
    """One piece of text, ready for a language model."""

    @property
    def expected(self) -> int:
        """Speech tokens that it will take, as far as that can be foreseen; at least 1."""


class Uttered(NamedTuple):
    """More of a passage that is being spoken."""

    samples: np.ndarray
    """(n,) float32, final."""
    seen: Callable[[float], Trace] | None = None
    """Gives what was seen inside of the passage up to here, as a trace of it alone, if it begins at this second of the
    whole."""


class Passages(Protocol):
    """A whole text, and what the user should know about it."""

    @property
    def passages(self) -> tuple[Any, ...]:
        """The model's own, each a :class:`Passage`."""

    @property
    def notes(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Spoken:
    """One passage, spoken: what came out and what it cost."""

    step_seconds: tuple[float, ...]
    mel: np.ndarray | None
    samples: int
    backbone_seconds: float
    decoder_seconds: float
    operations: float
    """Backbone operations that were needed, and those that the same setting without techniques needs."""
    reference_operations: float
    saved: frozenset[str]
    """Parts of the plan that saved operations; see :class:`paretone.setting.plan.Idle`."""


@dataclass(frozen=True)
class Sampler:
    """All that is random about one passage, drawn beforehand, and what is done with it."""

    noise: Tensor
    follow: Follow
    """The single step. Equal arguments give equal states, always: a stochastic sampler replays its noise."""


@dataclass(frozen=True)
class Decoded:
    samples: np.ndarray = field(repr=False)
    mel: np.ndarray | None = field(default=None, repr=False)
    """(frames, bands) natural-log mel of the new speech, where the decoder has one."""


def cost_of(spoken: Sequence[Spoken], pace: Pace) -> Measurements:
    """Measurements of all passages, with the waits between their pieces, as far as all families count alike; the rest
    is filled in later."""
    return Measurements(
        backbone_seconds=sum(one.backbone_seconds for one in spoken),
        decoder_seconds=sum(one.decoder_seconds for one in spoken),
        ops_ratio=sum(one.operations for one in spoken) / sum(one.reference_operations for one in spoken),
        largest_gap_seconds=pace.largest_gap,
        pause_seconds=pace.pause,
    )


def whole_mel(mels: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """The mel spectrograms of passages, (frames, bands) each, in order; ``None`` if there is none."""
    there = [mel for mel in mels if mel is not None]
    return np.concatenate(there) if there else None


def require_numbers(samples: np.ndarray) -> None:
    """Raise :class:`PlainError` if audio has values that are not numbers."""
    if not np.isfinite(samples).all():
        raise PlainError(
            "The synthesis gave values that are not numbers: the checkpoint is damaged or the precision too low; "
            "try another checkpoint or full precision."
        )


class TokenDecoder(ABC):
    """Makes the tokens of one passage heard, as they come. Made new for every passage: what it remembers is the
    passage's own."""

    @abstractmethod
    def push(self, tokens: Sequence[int]) -> np.ndarray:
        """Take the next tokens, and return the audio that is final now, (n,) float32. It may be none: a decoder gathers
        as many tokens as make a run worth while, and waits for those that its output depends on."""

    @abstractmethod
    def finish(self) -> np.ndarray:
        """No token follows: the rest of the audio, (n,) float32. Without a single token, there is none."""

    @abstractmethod
    def whole(self, tokens: Sequence[int]) -> Decoded:
        """All audio at once, independent of :meth:`push` and :meth:`finish`, as their reference."""

    exact: ClassVar[bool] = True
    """Whether :meth:`push` and :meth:`finish` give exactly that, up to rounding."""

    def difference(self) -> StreamingDifference | None:
        """Difference of the streamed audio from :meth:`whole`, after its end; ``None`` for ``exact`` decoders. May take
        as long as decoding."""
        return None

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far, where the decoder has one."""
        return None


@dataclass(frozen=True)
class StreamingDifference:
    """Difference of streamed audio from the same tokens decoded at once."""

    largest: float
    """The largest difference of a sample, full scale 1."""
    level: float
    """Root mean square of the difference over that of the audio, in decibels; minus infinity if they are equal."""
    samples: int
    """By how many samples the lengths differ."""

    @property
    def sentence(self) -> str:
        """As a note on a take."""
        return (
            f"Streamed audio differs from audio decoded at once by {self.level:.0f} dB (at most {self.largest:.2g} of "
            "full scale), because the decoder looks at the whole utterance; longer windows or more context "
            "reduce this."
        )


def streaming_difference(streamed: np.ndarray, whole: np.ndarray) -> StreamingDifference:
    """Compare (n,) ``streamed`` with (m,) ``whole``."""
    shared = min(len(streamed), len(whole))
    error = streamed[:shared].astype(np.float64) - whole[:shared]
    if not shared:
        return StreamingDifference(0.0, -np.inf, abs(len(streamed) - len(whole)))
    energy = float(np.mean(whole[:shared].astype(np.float64) ** 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = 10 * np.log10(float(np.mean(error**2)) / energy) if energy and error.any() else -np.inf
    return StreamingDifference(float(np.abs(error).max()), float(level), abs(len(streamed) - len(whole)))


def largest_difference(decoders: Iterable[TokenDecoder | None]) -> StreamingDifference | None:
    """Effect of streaming on the speech of several passages: that of the passage with the largest difference."""
    found = (one.difference() for one in decoders if one is not None)
    differing = (one for one in found if one is not None and math.isfinite(one.level))
    return max(differing, key=lambda one: one.level, default=None)


class GridDecoder(ABC):
    """Makes the codes of one passage heard, frame by frame, exactly as all at once. Made new for every passage: what
    it remembers is the passage's own."""

    @abstractmethod
    def push(self, codes: Tensor) -> np.ndarray:
        """Take the next frames' codes, (codebooks, n), and return the audio that is final now, (m,) float32: that which
        no later frame can change."""

    @abstractmethod
    def finish(self) -> np.ndarray:
        """No frame follows: the rest of the audio, (n,) float32. Without a single frame, there is none."""

    @abstractmethod
    def whole(self, codes: Tensor) -> Decoded:
        """All audio at once, equal to :meth:`push` and :meth:`finish` but independent of them. A mask among the
        ``codes`` adds nothing to its frame, so that a grid that is not full can be heard: of a frame of which only the
        first codebooks are known, what these say."""

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far, where the decoder has one."""
        return None
