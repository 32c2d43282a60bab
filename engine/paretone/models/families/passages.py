"""Passages, from a text and a voice to audio, and streaming decoders."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from torch import Tensor

from paretone.errors import PlainError
from paretone.models.families.pacing import Pace
from paretone.observer import Check
from paretone.sampling.flow import Follow
from paretone.setting.take import Measurements, Trace


class Prompt(Protocol):
    @property
    def notes(self) -> tuple[str, ...]: ...


class FlowPrompt(Prompt, Protocol):
    @property
    def frames(self) -> int:
        """Frames of the prompt before the new speech."""


class Passage(Protocol):
    """One piece of text, ready to be spoken."""

    @property
    def text(self) -> str: ...


class FramedPassage(Passage, Protocol):
    @property
    def frames(self) -> int:
        """Frames to sample, including those of a flow model's prompt; at least 1."""


class LanguagePassage(Passage, Protocol):
    @property
    def expected(self) -> int:
        """Estimated number of speech tokens; at least 1."""


@dataclass(frozen=True)
class TokenPassage:
    """One piece of text for a language model, with its ids."""

    text: str
    expected: int
    ids: tuple[int, ...] = field(repr=False)


class Uttered(NamedTuple):
    """More audio of the passage being spoken."""

    samples: np.ndarray
    """(n,) float32, final."""
    seen: Callable[[float], Trace] | None = None
    """Trace of the passage so far, given its start in seconds."""


AnyPassage = TypeVar("AnyPassage", bound=Passage)


@dataclass(frozen=True)
class Passages(Generic[AnyPassage]):
    """A text cut into a model's own passages, with notes for the user."""

    passages: tuple[AnyPassage, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spoken:
    step_seconds: tuple[float, ...]
    mel: np.ndarray | None
    samples: int
    backbone_seconds: float
    decoder_seconds: float
    operations: float
    reference_operations: float
    """Backbone operations of the same setting without techniques."""
    saved: frozenset[str]
    """Parts of the plan that saved operations; see :class:`paretone.setting.plan.Idle`."""
    vocoder_seconds: float | None = field(default=None, kw_only=True)
    """Share of ``decoder_seconds``, of decoders with flow and vocoder."""


@dataclass(frozen=True)
class Sampler:
    """The noise of one passage, drawn in advance, and the step that uses it."""

    noise: Tensor
    follow: Follow
    """The single step. Equal arguments always give equal states: a stochastic sampler replays its noise."""


@dataclass(frozen=True)
class Decoded:
    samples: np.ndarray = field(repr=False)
    mel: np.ndarray | None = field(default=None, repr=False)
    """Natural-log mel (frames, bands) of the new speech, if the decoder has one."""


def cost_of(spoken: Sequence[Spoken], pace: Pace) -> Measurements:
    """Measurements common to all families, summed over passages, including waits between pieces."""
    vocoders = [one.vocoder_seconds for one in spoken if one.vocoder_seconds is not None]
    return Measurements(
        backbone_seconds=sum(one.backbone_seconds for one in spoken),
        vocoder_seconds=sum(vocoders) if vocoders else None,
        decoder_seconds=sum(one.decoder_seconds for one in spoken),
        ops_ratio=sum(one.operations for one in spoken) / sum(one.reference_operations for one in spoken),
        largest_gap_seconds=pace.largest_gap,
        pause_seconds=pace.pause,
    )


def whole_mel(mels: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """Concatenate the mel spectrograms (frames, bands) of passages; ``None`` without any."""
    there = [mel for mel in mels if mel is not None]
    return np.concatenate(there) if there else None


def require_numbers(samples: np.ndarray) -> None:
    """Raise :class:`PlainError` for audio with values that are not numbers."""
    if not np.isfinite(samples).all():
        raise PlainError(
            "The synthesis gave values that are not numbers: the checkpoint is damaged or the precision too low; "
            "try another checkpoint or full precision."
        )


Codes = TypeVar("Codes", contravariant=True)


class StreamDecoder(ABC, Generic[Codes]):
    """Streaming decoder of one passage; it keeps state, so each passage needs a new one."""

    @abstractmethod
    def push(self, codes: Codes, /) -> np.ndarray:
        """Add codes; return the audio that is now final, (n,) float32. It may be empty: a decoder gathers enough codes
        for an efficient run, and waits for later ones that affect its output."""

    @abstractmethod
    def finish(self) -> np.ndarray:
        """End the passage; return the rest of the audio, (n,) float32, empty without codes."""

    @abstractmethod
    def whole(self, codes: Codes, /) -> Decoded:
        """Decode all audio at once, independently of :meth:`push` and :meth:`finish`, as their reference."""

    @property
    def mel(self) -> np.ndarray | None:
        """Natural-log mel (frames, bands) decoded so far, if the decoder has one."""
        return None


class TokenDecoder(StreamDecoder[Sequence[int]]):
    vocoder_seconds: float | None = None
    """Seconds of the vocoder so far, of decoders with flow and vocoder."""
    patience: int = 1
    """Factor by which later groups of tokens that are decoded at once may be longer, to save time."""
    check: Check = staticmethod(lambda: None)
    """Called within long work; may raise to cancel."""
    saved: frozenset[str] = frozenset()
    """Parts of the plan that saved operations so far; see :class:`paretone.setting.plan.Idle`."""
    operations: float = 0.0
    """Of its flow so far; ``reference_operations`` under the same setting without techniques."""
    reference_operations: float = 0.0
    exact: ClassVar[bool] = True
    """Whether streaming equals :meth:`whole` up to rounding."""

    def difference(self) -> StreamingDifference | None:
        """Difference of the streamed audio from :meth:`whole`; ``None``: ``exact``. May take as long as decoding."""
        return None


class GridDecoder(StreamDecoder[Tensor]):
    """Exact decoder of codes (codebooks, n), frame by frame. Masked codes add nothing to :meth:`whole`: a frame whose
    first codebooks alone are known is heard by these."""


@dataclass(frozen=True)
class StreamingDifference:
    largest: float
    """Largest difference of a sample, full scale 1."""
    level: float
    """RMS of the difference over RMS of the audio, in decibels; minus infinity if equal."""

    @property
    def sentence(self) -> str:
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
        return StreamingDifference(0.0, -np.inf)
    energy = float(np.mean(whole[:shared].astype(np.float64) ** 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = 10 * np.log10(float(np.mean(error**2)) / energy) if energy and error.any() else -np.inf
    return StreamingDifference(float(np.abs(error).max()), float(level))


def largest_difference(decoders: Iterable[TokenDecoder | None]) -> StreamingDifference | None:
    found = (one.difference() for one in decoders if one is not None)
    differing = (one for one in found if one is not None and math.isfinite(one.level))
    return max(differing, key=lambda one: one.level, default=None)
