"""Front end of the official release: voices by aligner and latents, texts by grapheme and duration models.

``preprocess`` and the first half of ``forward`` of ``tts/infer_cli.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from paretone.models.families.voices import Remembered, changed
from paretone.models.megatts3.aligner import Aligner
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.config import LATENTS
from paretone.models.megatts3.duration_model import DurationModel, DurationPrompt
from paretone.models.megatts3.durations import Tempo, settled_durations
from paretone.models.megatts3.graphemes import GraphemeModel, ReadPhones
from paretone.models.megatts3.passages import MegaPassage, MegaPassages, MegaPrompt, Timed
from paretone.models.megatts3.text import read_text
from paretone.models.megatts3.voices import prepare_voice
from paretone.models.megatts3.wavvae import WavVAE

REMEMBERED_SEGMENTS = 256
SHOWN = 40
"""Characters of a segment that a note shows."""


class OfficialFrontEnd:
    """Makes voices and texts ready. Remembers the last voice and how segments are read: that takes longest."""

    def __init__(
        self, aligner: Aligner, durations: DurationModel, graphemes: GraphemeModel, wavvae: WavVAE, window: int
    ) -> None:
        self._aligner, self._durations, self._wavvae = aligner, durations, wavvae
        self._window = window
        self._graphemes = graphemes
        self._check: Callable[[], None] = lambda: None
        self._read = functools.lru_cache(maxsize=REMEMBERED_SEGMENTS)(self._read_segment)
        self._heard: Remembered[tuple[MegaPrompt, DurationPrompt]] = Remembered()

    @classmethod
    def load(cls, folder: OfficialFolder, wavvae: WavVAE, device: torch.device | str = "cpu") -> OfficialFrontEnd:
        """The front end in an official folder; ``wavvae`` is loaded already, for it decodes as well.

        Raises :class:`paretone.errors.CheckpointError`.
        """
        folder.require_parts()
        return cls(
            folder.aligner().to(device),
            folder.duration_model().to(device),
            folder.grapheme_model(device),
            wavvae,
            folder.window(),
        )

    def prompt(self, audio: Path, seed: int = 0, check: Callable[[], None] = lambda: None) -> MegaPrompt:
        """A recording with its latents, heard by the aligner. ``seed`` draws the latents where they come from an
        encoder; ``check`` may raise to cancel.

        Raises :class:`paretone.errors.AudioError`.
        """
        return self._prepared(audio, seed, check)[0]

    def passages(
        self,
        text: str,
        audio: Path,
        tempo: Tempo | None = None,
        seed: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> MegaPassages:
        """``text`` as the voice in ``audio`` says it. ``seed`` draws the disturbance of durations where ``tempo`` asks
        for one; ``check`` may raise to cancel.

        Raises :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`.
        """
        read = read_text(text)
        prompt, heard = self._prepared(audio, seed, check)
        generator = torch.Generator().manual_seed(seed)
        notes, passages = list(read.notes), []
        self._check = check
        for number, segment in enumerate(read.segments):
            phones = self._read(segment)
            notes.extend(_doubts(segment, phones))
            codes = self._durations.predict(heard, self._row(phones.phones), self._row(phones.tones), check)
            durations = settled_durations(
                codes,
                phones.phones,
                self._durations.config.codes,
                is_first=number == 0,
                is_last=number == len(read.segments) - 1,
                tempo=tempo,
                generator=generator,
            )
            spoken = Timed(phones.phones, phones.tones, tuple(durations))
            passages.append(MegaPassage.of(segment, prompt.spoken, spoken))
        return MegaPassages(tuple(passages), tuple(notes))

    def _read_segment(self, segment: str) -> ReadPhones:
        # How to cancel is no argument, for what was read is remembered by the segment alone.
        return self._graphemes(segment, self._check)

    def _prepared(self, audio: Path, seed: int, check: Callable[[], None]) -> tuple[MegaPrompt, DurationPrompt]:
        files = audio, audio.with_suffix(LATENTS)
        key = audio, *map(changed, files), seed if self._wavvae.encoder else 0
        return self._heard.of(key, lambda: self._listen(audio, seed, check))

    def _listen(self, audio: Path, seed: int, check: Callable[[], None]) -> tuple[MegaPrompt, DurationPrompt]:
        generator = torch.Generator().manual_seed(seed)
        voice = prepare_voice(audio, self._window, self._wavvae, generator)
        recording = voice.recording
        spoken = self._aligner.align(recording.for_aligner().to(self._device), check)
        prompt = MegaPrompt(voice.latents, spoken, recording.lufs, recording.seconds, recording.notes)
        rows = (self._row(part) for part in (spoken.phones, spoken.tones, spoken.durations))
        return prompt, self._durations.read_prompt(*rows)

    @property
    def _device(self) -> torch.device:
        return self._durations.enc_proj.weight.device

    def _row(self, numbers: tuple[int, ...]) -> Tensor:
        return torch.tensor([numbers], device=self._device)


def _doubts(segment: str, read: ReadPhones) -> list[str]:
    beginning = segment if len(segment) <= SHOWN else f"{segment[:SHOWN]}…"
    doubts = []
    if not read.finished:
        doubts.append(f"The model did not finish reading “{beginning}”; its end may not be spoken.")
    if read.unknown:
        sounds = "one sound" if read.unknown == 1 else f"{read.unknown} sounds"
        doubts.append(f"The model has no phones for {sounds} of “{beginning}”; check how it is spoken.")
    return doubts
