"""Passages: from a text and a voice to audio."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

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
