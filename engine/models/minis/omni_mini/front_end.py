"""Front end of the bundled masked model: phones of a text and of a voice's recording, one token for every codec
frame."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.audio.mel import MelFrontEnd
from engine.front_end.durations import DurationTable, labels, timed
from engine.front_end.reading import PhoneReader
from engine.front_end.timed_phone import TimedPhone
from engine.models.base import Voice
from engine.models.f5.passages import Prompt as ReadPrompt
from engine.models.f5.prompts import PromptReader
from engine.models.families.voices import Remembered
from engine.models.minis.frames import HOP, SAMPLE_RATE
from engine.models.minis.omni_mini.codec import ResidualCodec
from engine.models.minis.omni_mini.layout import Layout
from engine.models.minis.prompts import phones_of_prompt


@dataclass(frozen=True)
class OmniMiniPrompt:
    """A voice made ready."""

    tokens: Tensor = field(repr=False)
    """(n,) ids of the text, one for every frame."""
    codes: Tensor = field(repr=False)
    """(codebooks, n)."""
    mean_mel: Tensor = field(repr=False)
    """(bands,) over the recording."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OmniMiniPassage:
    """One piece of text."""

    text: str
    tokens: Tensor = field(repr=False)
    """(n,) ids, one for every frame that is to come."""

    @property
    def frames(self) -> int:
        """Frames of its canvas."""
        return len(self.tokens)


@dataclass(frozen=True)
class OmniMiniPassages:
    """A whole text."""

    passages: tuple[OmniMiniPassage, ...]
    notes: tuple[str, ...] = ()


class OmniMiniFrontEnd:
    """Makes voices and texts ready, and remembers the last voice. What it gives is on the codec's device."""

    def __init__(self, codec: ResidualCodec, durations: DurationTable, layout: Layout) -> None:
        self._codec, self._layout = codec, layout
        self._reader = PhoneReader(durations)
        self._read_prompt = PromptReader(MelFrontEnd(), whole_frames=True)
        self._prompts: Remembered[OmniMiniPrompt] = Remembered(operator.is_)

    def passages(self, text: str, voice: Voice, speed: float, by_sentence: bool) -> OmniMiniPassages:
        """``text`` with the durations of ``voice``; ``by_sentence`` as in :meth:`PhoneReader.pieces`.

        Raises :class:`engine.errors.TextError`.
        """
        pieces, notes = self._reader.pieces(text, voice.id, speed, quick_start=False, by_sentence=by_sentence)
        return OmniMiniPassages(
            tuple(OmniMiniPassage(one.text, self._tokens(timed(one.phones, one.seconds))) for one in pieces), notes
        )

    def prompt(self, voice: Voice) -> OmniMiniPrompt:
        """``voice`` made ready. Raises :class:`engine.errors.AudioError` and :class:`engine.errors.TextError`."""
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: ReadPrompt) -> OmniMiniPrompt:
        phones, notes = phones_of_prompt(read, self._reader)
        mel = read.mel[:, : read.frames].to(self._codec.mel_mean.device)
        codes = self._codec.encode(mel)[0].T.contiguous()
        return OmniMiniPrompt(self._tokens(phones, codes.shape[1]), codes, mel[0].mean(0), notes)

    def _tokens(self, phones: Sequence[TimedPhone], frames: int | None = None) -> Tensor:
        """``phones`` over a number of codec frames, by default as many as they fill in part."""
        stride = self._codec.config.stride
        if frames is None:
            frames = max(-(-round(phones[-1][2] * SAMPLE_RATE / HOP) // stride), 1)
        by_frame = labels(phones, frames * stride, self._layout.vocabulary, SAMPLE_RATE, HOP)
        return torch.from_numpy(self._layout.text(by_frame, stride)).to(self._codec.mel_mean.device)
