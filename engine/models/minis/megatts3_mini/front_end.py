"""Front end of the bundled MegaTTS 3: any recording with its transcript as latents, texts as phones with their
times."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.front_end.alignment import Aligner
from engine.front_end.durations import DurationTable, timed
from engine.front_end.reading import PhoneReader
from engine.front_end.timed_phone import TimedPhone
from engine.measure.loudness import integrated_loudness
from engine.models.base import Voice
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.passages import Prompt
from engine.models.f5.prompts import PromptReader
from engine.models.families.voices import Remembered
from engine.models.megatts3.config import LATENT_STRIDE
from engine.models.megatts3.passages import MegaPassage, MegaPassages, MegaPrompt, Timed
from engine.models.megatts3.phone_table import ENGLISH_TONE, durations_of_phones
from engine.models.minis.megatts3_mini.mel_codec import MelCodec
from engine.models.minis.megatts3_mini.phones import phone_ids, phones_of_frames
from engine.models.minis.prompts import phones_of_prompt
from engine.models.minis.texts import Spoken
from engine.setting.knobs import Values


class TimedPhoneFrontEnd(ABC):
    """Makes voices and texts ready."""

    def __init__(self, read_prompt: PromptReader, aligner: Aligner, hop: int) -> None:
        """``hop``: samples of a frame of the duration clock."""
        self._read_prompt, self._aligner, self._hop = read_prompt, aligner, hop
        self._prompts: Remembered[MegaPrompt] = Remembered(operator.is_)

    @abstractmethod
    def spoken(
        self, text: str, voice: Voice, options: Values, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        """Pieces of ``text``, and notes. Raises :class:`engine.errors.TextError`."""

    @abstractmethod
    def ids(self, phones: Sequence[TimedPhone]) -> list[int]:
        """Rows of the phone table. Raises :class:`engine.errors.TextError`."""

    @abstractmethod
    def latents(self, mel: Tensor) -> Tensor:
        """Of a prompt's mel (1, frames, bands), (1, n, latent) on the CPU."""

    def __call__(
        self, text: str, voice: Voice, options: Values, check: object, seed: int | None = None
    ) -> tuple[MegaPrompt, MegaPassages]:
        """See :class:`engine.models.megatts3.adapter.FrontEnd`; nothing here takes long enough to be cancelled."""
        prompt = self._prompt(voice)
        pieces, notes = self.spoken(text, voice, options, seed)
        passages = tuple(MegaPassage.of(piece, prompt.spoken, self._timed(phones)) for piece, phones in pieces)
        return prompt, MegaPassages(passages, notes)

    def _prompt(self, voice: Voice) -> MegaPrompt:
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: Prompt) -> MegaPrompt:
        latents = self.latents(read.mel[:, : read.frames])
        phones, notes = phones_of_prompt(read, self._aligner)
        own = read.level.restored(read.samples).numpy()
        return MegaPrompt(
            latents,
            self._timed(phones, latents.shape[1]),
            integrated_loudness(own, SAMPLE_RATE).lufs,
            read.seconds,
            notes,
        )

    def _timed(self, phones: Sequence[TimedPhone], latents: int | None = None) -> Timed:
        """``phones`` under their numbers, over a number of latents, by default as many as they fill in part."""
        if latents is None:
            latents = -(-round(phones[-1][2] * SAMPLE_RATE / self._hop) // LATENT_STRIDE)
        places = phones_of_frames(phones, latents * LATENT_STRIDE, SAMPLE_RATE, self._hop)
        durations = durations_of_phones(places, len(phones))
        return Timed(tuple(self.ids(phones)), (ENGLISH_TONE,) * len(phones), tuple(durations.tolist()))


class MegaMiniFrontEnd(TimedPhoneFrontEnd):
    """Recordings through the mel codec's encoder, texts by our own phones and a table of durations. The clock of
    durations is that of the mel frames."""

    def __init__(self, codec: MelCodec, read_prompt: PromptReader, durations: DurationTable) -> None:
        self._codec = codec
        self._reader = PhoneReader(durations)
        super().__init__(read_prompt, self._reader, HOP)

    def spoken(
        self, text: str, voice: Voice, options: Values, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        pieces, notes = self._reader.pieces(text, voice.id, options["speed"], options["quick_start"])
        return [(piece.text, tuple(timed(piece.phones, piece.seconds))) for piece in pieces], notes

    def ids(self, phones: Sequence[TimedPhone]) -> list[int]:
        return phone_ids(name for name, _, _ in phones).tolist()

    def latents(self, mel: Tensor) -> Tensor:
        whole = mel.shape[1] // LATENT_STRIDE * LATENT_STRIDE
        return self._codec.encode(mel[:, :whole].to(self._codec.mel_mean.device)).cpu()
