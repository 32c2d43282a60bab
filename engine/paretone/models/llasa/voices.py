"""Voices for LLaSA: the codes of a recording, and its transcript."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from paretone.audio.mel import resample_prompt
from paretone.audio.recording import read_recording
from paretone.errors import AudioError, CheckpointError
from paretone.extras import needing
from paretone.last_used import VOICES, LastUsed
from paretone.models.base import Voice
from paretone.models.families.voices import (
    USUAL_RATE,
    kept_codes,
    spoken_bytes,
    spoken_rate,
    transcript_notes,
    transcript_of,
)
from paretone.models.files.checkpoints import Shards, pretrained
from paretone.models.llasa.config import INSTALL, LONGEST_REFERENCE
from paretone.models.llasa.xcodec2 import SAMPLE_RATE
from paretone.observer import Check, Status
from paretone.reading import version
from paretone.wording import beyond

if TYPE_CHECKING:
    from transformers import Xcodec2Model


# Encode recordings to codes of XCodec2, with the encoder of the release converted for ``transformers``.
#
# Encoder and w2v-bert together are as large as the language model, but loaded only for a new voice. For training, an
# encoder stays loaded over several recordings.
BANDS = 80
"""Mel bands of w2v-bert's input, which takes two frames of 10 ms at a time."""
CODE_SAMPLES = 320


class VoiceEncoder:
    """Encodes recordings, with a cache."""

    def __init__(self, folder: Path, cache: Path, device: torch.device | str = "cpu", several: bool = False) -> None:
        """``folder`` is the converted release; codes are cached in the folder ``cache``. For ``several`` recordings the
        encoder stays loaded until :meth:`rest`."""
        self._folder, self._cache, self._device, self._several = folder, cache, device, several
        self._loaded: Xcodec2Model | None = None

    def __call__(
        self, samples: np.ndarray, status: Status = lambda text: None, check: Check = lambda: None
    ) -> tuple[int, ...]:
        """Codes of (n,) float32 ``samples`` at 16 kHz: n // 320 + 1, the last of them partly silence. ``check`` may
        raise to cancel. Raises :class:`CheckpointError` if encoder or package is missing or unsuitable."""
        shards = Shards.find(self._folder)

        def encode() -> np.ndarray:
            status("Encoding the voice …")
            return self._encode(samples, shards, check)

        return tuple(kept_codes(self._cache, samples, shards.fingerprint(check), encode, 1).tolist())

    def rest(self) -> None:
        self._loaded = None

    @torch.inference_mode()
    def _encode(self, samples: np.ndarray, shards: Shards, check: Check) -> np.ndarray:
        model = self._loaded
        if model is None:
            model = load_encoder(shards)
            nn.Module.to(model, self._device)  # transformers' own hides its arguments from type checkers
            self._loaded = model if self._several else None
        check()
        from transformers import SeamlessM4TFeatureExtractor  # Once the encoder is there, the package is.

        # w2v-bert's input: Kaldi's log-mel frames, normalised over time, two per row.
        extractor = SeamlessM4TFeatureExtractor(
            feature_size=BANDS, num_mel_bins=BANDS, sampling_rate=SAMPLE_RATE, stride=2, padding_value=1.0
        )
        padded = torch.from_numpy(np.pad(samples, (0, CODE_SAMPLES - len(samples) % CODE_SAMPLES)))
        around = functional.pad(padded, (CODE_SAMPLES // 2, CODE_SAMPLES // 2)).numpy()
        features = extractor(around, sampling_rate=SAMPLE_RATE, return_tensors="pt")["input_features"]
        found = model.encode(padded[None, None].to(self._device), features.to(self._device))
        return found.audio_codes[0, 0].cpu().numpy().astype(np.int32)


def load_encoder(shards: Shards) -> Xcodec2Model:
    """Load the converted release, including the unused decoder. Raises :class:`CheckpointError` if ``transformers`` is
    missing or the release is not the converted one."""
    with needing(CheckpointError, "A voice is encoded by the package transformers, 5.13 or later", INSTALL):
        from transformers import Xcodec2Model
    _, names = shards.read(lambda name: False)
    if not any(name.startswith("acoustic_encoder.") for name in names):
        raise CheckpointError(
            f"{shards.where} is the original release of XCodec2, which can only decode here: to speak in a voice, put "
            "the folder of HKUSTAudio/xcodec2-hf in its place; or switch speaking in the voice off."
        )
    made: Xcodec2Model = pretrained(Xcodec2Model.from_pretrained, shards.folder, shards.where)
    return made


@dataclass(frozen=True)
class LlasaPrompt:
    """Prompt of the speech; empty without a voice."""

    transcript: str = ""
    codes: tuple[int, ...] = field(default=(), repr=False)
    rate: float = USUAL_RATE
    """Bytes of text spoken per second."""
    notes: tuple[str, ...] = ()

    def seconds(self, text: str) -> float:
        return spoken_bytes(text) / self.rate


class VoiceReader:
    def __init__(self, encoder: VoiceEncoder, codes: int) -> None:
        """``codes``: number of codes in the language model."""
        self._encoder, self._codes = encoder, codes
        self._prompts: LastUsed[LlasaPrompt] = LastUsed(VOICES)

    def __call__(self, voice: Voice, check: Check = lambda: None, status: Status = lambda text: None) -> LlasaPrompt:
        """Prepare a voice; ``check`` may raise to cancel. Raises :class:`AudioError`, :class:`TextError`, and
        :class:`CheckpointError` if the encoder is unusable."""
        return self._prompts.of((voice, version(voice.audio)), lambda: self._read(voice, check, status))

    def _read(self, voice: Voice, check: Check, status: Status) -> LlasaPrompt:
        transcript = transcript_of(voice)
        recording = read_recording(voice.audio)
        if recording.seconds > LONGEST_REFERENCE:
            raise AudioError(
                f"The recording {voice.audio} lasts {beyond(recording.seconds)}, but LLaSA has room for "
                f"{LONGEST_REFERENCE:.0f} s besides the new speech; cut it, and its transcript, best to 5 to 12 s."
            )
        samples = resample_prompt(torch.from_numpy(recording.samples), recording.sample_rate, SAMPLE_RATE)
        codes = self._encoder(samples.numpy(), status, check)
        if max(codes) >= self._codes:
            raise CheckpointError(
                f"XCodec2 gives the code {max(codes)}, but the language model knows {self._codes} of them: they do not "
                "belong together. Download both again."
            )
        rate, mismatch = spoken_rate(transcript, recording.seconds, Path(voice.audio).name, "LLaSA")
        notes = (*recording.notes, *transcript_notes(voice, mismatch))
        return LlasaPrompt(transcript, codes, rate, notes)
