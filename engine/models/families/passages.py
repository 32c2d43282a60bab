"""Passages: from a text and a voice to audio."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from torch import Tensor

from engine.errors import PlainError
from engine.sampling.flow import Follow
from engine.setting.take import Measurements


class Prompt(Protocol):
    """A voice made ready."""

    @property
    def frames(self) -> int:
        """Frames that it takes in front of the new speech."""

    @property
    def notes(self) -> tuple[str, ...]: ...


class Passage(Protocol):
    """One piece of text, ready for the sampler."""

    @property
    def text(self) -> str: ...

    @property
    def frames(self) -> int:
        """Frames to sample, those of the prompt included."""


class Passages(Protocol):
    """A whole text, and what the user should know about it."""

    @property
    def passages(self) -> tuple[Passage, ...]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class LanguagePrompt(Protocol):
    """A voice made ready for a language model."""

    @property
    def notes(self) -> tuple[str, ...]: ...


class LanguagePassage(Protocol):
    """One piece of text, ready for a language model."""

    @property
    def text(self) -> str: ...

    @property
    def expected(self) -> int:
        """Speech tokens that it will take, as far as that can be foreseen; at least 1."""


class LanguagePassages(Protocol):
    """A whole text for a language model, and what the user should know about it."""

    @property
    def passages(self) -> tuple[LanguagePassage, ...]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class MaskedPrompt(Protocol):
    """A voice made ready for a masked model."""

    @property
    def notes(self) -> tuple[str, ...]: ...


class MaskedPassage(Protocol):
    """One piece of text, ready for a masked model."""

    @property
    def text(self) -> str: ...

    @property
    def frames(self) -> int:
        """Frames of its canvas, at least 1."""


class MaskedPassages(Protocol):
    """A whole text for a masked model, and what the user should know about it."""

    @property
    def passages(self) -> tuple[MaskedPassage, ...]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class Spoken(Protocol):
    """A passage of any family that was spoken: what it cost."""

    @property
    def backbone_seconds(self) -> float: ...

    @property
    def decoder_seconds(self) -> float: ...

    @property
    def operations(self) -> float:
        """The backbone's, as they were needed, and those that the same setting without techniques needs."""

    @property
    def reference_operations(self) -> float: ...


@dataclass(frozen=True)
class Sampler:
    """All that is random about one passage, drawn beforehand, and what is done with it."""

    noise: Tensor
    """The state at time 0, (1, frames, bands), float32."""
    follow: Follow
    """The single step. Equal arguments give equal states, always: a stochastic sampler replays its noise."""


@dataclass(frozen=True)
class Decoded:
    """A passage as it is heard."""

    samples: np.ndarray = field(repr=False)
    mel: np.ndarray | None = field(default=None, repr=False)
    """(frames, bands) natural-log mel of the new speech, where the decoder has one."""


def cost_of(spoken: Sequence[Spoken]) -> Measurements:
    """What passages cost together, as far as all families count it alike; the rest is left to be filled in."""
    return Measurements(
        backbone_seconds=sum(one.backbone_seconds for one in spoken),
        decoder_seconds=sum(one.decoder_seconds for one in spoken),
        ops_ratio=sum(one.operations for one in spoken) / sum(one.reference_operations for one in spoken),
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
