"""What the tokens of a bundled model are made of: recordings to codes, codes to audio.

A codec takes frames of a recording, codes several of them as one token, and gives them back. What a frame is, who
speaks, and how frames are heard is a coding's own: :class:`engine.models.minis.natural.coding.NaturalCoding`, and
:class:`engine.models.minis.mel_coding.MelCoding`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.audio.mel import MelFrontEnd
from engine.front_end.frame_phones import labels
from engine.front_end.phones import PhoneVocabulary
from engine.front_end.timed_phone import TimedPhone
from engine.models.base import Voice
from engine.models.families.passages import Decoded
from engine.models.minis.frames import SAMPLE_RATE
from engine.models.networks.quantised_mel import QuantisedMel

Codec = TypeVar("Codec", bound=QuantisedMel)
Who = TypeVar("Who")
"""Who speaks, as a coding knows it."""


class CodeStream(Protocol):
    """Makes the codes of one passage heard, exactly the same in pieces and at once."""

    def push(self, codes: Tensor) -> np.ndarray:
        """The next tokens' codes (n, …) to the audio that is final now, (m,) float32."""

    def finish(self, codes: Tensor) -> np.ndarray:
        """The last tokens' codes (n, …), of which there may be none, to the rest of the audio, (m,) float32."""

    def whole(self, codes: Tensor) -> Decoded:
        """All codes (n, …) of a passage at once, independently of the rest."""

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far."""


class Coding(ABC, Generic[Codec, Who]):
    """Speech as tokens."""

    hop: ClassVar[int]
    """Samples of a frame."""
    nobody: Who
    """A voice that stands for any, to warm up with."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    @property
    def device(self) -> torch.device:
        """The codec's."""
        return self.codec.mel_mean.device

    @property
    def stride(self) -> int:
        """Frames of a token."""
        return self.codec.config.stride

    @property
    def token_seconds(self) -> float:
        """How long a token is heard."""
        return self.hop * self.stride / SAMPLE_RATE

    @abstractmethod
    def frames(self, mel: Tensor) -> Tensor:
        """Frames (n, bands of the codec) of a recording's log mel (1, mel frames, 100), on the codec's device."""

    @abstractmethod
    def voice_of(self, frames: Tensor) -> Who:
        """Who speaks in these frames (n, …)."""

    def speaker(self, voice: Voice, frames: Tensor) -> Who:
        """Who speaks in the recording of ``voice``, whose frames these are."""
        return self.voice_of(frames)

    @abstractmethod
    def codes(self, frames: Tensor, who: Who) -> Tensor:
        """Codes (n // stride, …), int64, of frames (n, …) in which ``who`` speaks; what does not fill a token is left
        out."""

    @abstractmethod
    def stream(self, who: Who) -> CodeStream:
        """What makes the codes of a passage heard, spoken by ``who``."""

    @torch.inference_mode()
    def copied(self, samples: np.ndarray, who: Who) -> np.ndarray:
        """Copy of speech (n,) by ``who`` through the tokens, (m,) float32, both at 24 kHz."""
        frames = self.frames(MelFrontEnd()(torch.from_numpy(samples)))
        return self.stream(who).whole(self.codes(frames, who)).samples

    def frames_until(self, phones: Sequence[TimedPhone]) -> int:
        """Frames from the beginning to the end of the last of ``phones``."""
        return round(phones[-1][2] * SAMPLE_RATE / self.hop)

    def labels(self, phones: Sequence[TimedPhone], frames: int, vocabulary: PhoneVocabulary) -> np.ndarray:
        """(frames,) int64 ids of the phones that sound at the middles of frames."""
        return labels(phones, frames, vocabulary, SAMPLE_RATE, self.hop)
