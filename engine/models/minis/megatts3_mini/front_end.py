"""Front end of the bundled MegaTTS 3: any recording with its transcript through the mel codec's encoder, texts by our
own phones and a table of durations."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch

from engine.front_end.durations import DurationTable, timed
from engine.front_end.reading import PhoneReader
from engine.front_end.timed_phone import TimedPhone
from engine.measure.loudness import integrated_loudness
from engine.models.base import Voice
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.passages import Prompt
from engine.models.f5.prompts import PromptReader
from engine.models.families.voices import Remembered
from engine.models.megatts3.passages import MegaPassage, MegaPassages, MegaPrompt, Timed
from engine.models.megatts3.phone_table import ENGLISH_TONE, durations_of_phones
from engine.models.minis.megatts3_mini.mel_codec import MelCodec
from engine.models.minis.megatts3_mini.phones import phone_ids, phones_of_frames
from engine.models.minis.prompts import phones_of_prompt
from engine.setting.knobs import Values


class MegaMiniFrontEnd:
    """Makes voices and texts ready. The clock of durations is that of the mel frames."""

    def __init__(self, codec: MelCodec, read_prompt: PromptReader, durations: DurationTable) -> None:
        self._codec = codec
        self._read_prompt = read_prompt
        self._reader = PhoneReader(durations)
        self._prompts: Remembered[MegaPrompt] = Remembered(operator.is_)

    def __call__(self, text: str, voice: Voice, options: Values, check: object) -> tuple[MegaPrompt, MegaPassages]:
        """See :class:`engine.models.megatts3.adapter.FrontEnd`; nothing here takes long enough to be cancelled."""
        prompt = self._prompt(voice)
        pieces, notes = self._reader.pieces(text, voice.id, options["speed"], options["quick_start"])
        passages = tuple(
            MegaPassage.of(piece.text, prompt.spoken, self._timed(timed(piece.phones, piece.seconds)))
            for piece in pieces
        )
        return prompt, MegaPassages(passages, notes)

    def _prompt(self, voice: Voice) -> MegaPrompt:
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: Prompt) -> MegaPrompt:
        stride = self._codec.config.stride
        latents = read.frames // stride
        mel = read.mel[:, : latents * stride].to(self._codec.mel_mean.device)
        phones, notes = phones_of_prompt(read, self._reader)
        own = read.level.restored(read.samples).numpy()
        return MegaPrompt(
            self._codec.encode(mel).cpu(),
            self._timed(phones, latents),
            integrated_loudness(own, SAMPLE_RATE).lufs,
            read.seconds,
            notes,
        )

    def _timed(self, phones: Sequence[TimedPhone], latents: int | None = None) -> Timed:
        """``phones`` under their official numbers, over a number of latents, by default as many as they fill in
        part."""
        stride = self._codec.config.stride
        if latents is None:
            latents = -(-round(phones[-1][2] * SAMPLE_RATE / HOP) // stride)
        places = phones_of_frames(phones, latents * stride, SAMPLE_RATE, HOP)
        durations = durations_of_phones(places, len(phones))
        ids = phone_ids(name for name, _, _ in phones)
        return Timed(tuple(ids.tolist()), (ENGLISH_TONE,) * len(phones), tuple(durations.tolist()))
