"""A recording as CosyVoice 2 reads it, cached by its content.

Upstream computes a prompt again for every sentence. Here the results of the slow models are kept in memory and on disk
under a name made from the samples and the models, so that each voice is computed once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from paretone.audio.prompt_resampling import resample
from paretone.audio.recording import Recording, read_recording
from paretone.errors import AudioError, CheckpointError
from paretone.files import write_atomically
from paretone.last_used import LastUsed
from paretone.models.cosyvoice2.acoustic_config import FRAMES_PER_TOKEN
from paretone.models.cosyvoice2.features import ENCODER_RATE, SPEECH_RATE, speech_mel
from paretone.models.cosyvoice2.speech_tokenizer import RecordingEncoder
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from paretone.paths import data_folder
from paretone.wording import beyond

LONGEST_SECONDS = 30.0
REMEMBERED = 16
"""Voices that are kept in memory."""
FORMAT = "1"
"""Goes into the names of files, so that a change of what they hold makes new ones."""


@dataclass(frozen=True)
class EncodedRecording:
    """Output of the slow models for a recording."""

    tokens: Tensor = field(repr=False)
    """(n,) int64."""
    speaker: Tensor = field(repr=False)
    """(192,) float32."""


@dataclass(frozen=True)
class VoicePrompt:
    """A voice made ready."""

    acoustic: AcousticPrompt = field(repr=False)
    """On the CPU."""
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def tokens(self) -> tuple[int, ...]:
        """The recording's speech tokens."""
        return tuple(self.acoustic.tokens[0].tolist())


class VoicePrompts:
    """Makes recordings ready with the models of one release."""

    def __init__(self, encoder: RecordingEncoder, codes: int, speaker_width: int, folder: Path | None = None) -> None:
        """``codes`` and ``speaker_width`` are what the other models take; ``folder`` is where on disk what was heard is
        kept."""
        self._encoder, self._codes, self._speaker_width = encoder, codes, speaker_width
        self._folder = folder or data_folder() / "cache" / "cosyvoice2"
        self._ready: LastUsed[VoicePrompt] = LastUsed(REMEMBERED)

    def __call__(self, audio: Path, check: Callable[[], None] = lambda: None) -> VoicePrompt:
        """The recording ``audio`` made ready; ``check`` may raise to cancel.

        Raises :class:`AudioError`, and :class:`CheckpointError` where a model cannot be used.
        """
        recording = read_recording(audio)
        if recording.seconds > LONGEST_SECONDS:
            raise AudioError(
                f"The recording {audio} lasts {beyond(recording.seconds)}, but CosyVoice 2 takes at most "
                f"{LONGEST_SECONDS:.0f} s; cut it, and its transcript, best to 5 to 12 s."
            )
        key = self._key(recording, check)
        return self._ready.of(key, lambda: self._prepared(recording, self._heard(key, recording, check)))

    def _key(self, recording: Recording, check: Callable[[], None]) -> str:
        parts = FORMAT, *self._encoder.fingerprints(check), str(recording.sample_rate)
        digest = hashlib.sha256(" ".join(parts).encode())
        digest.update(recording.samples.tobytes())
        return digest.hexdigest()

    def _heard(self, key: str, recording: Recording, check: Callable[[], None]) -> EncodedRecording:
        path = self._folder / f"{key}.safetensors"
        found = _read(path)
        if found is not None:
            return found
        samples = resample(torch.from_numpy(recording.samples), recording.sample_rate, ENCODER_RATE)
        check()
        tokens = self._encoder.tokens(samples)
        check()
        speaker = self._encoder.speaker(samples)
        self._require_fit(tokens, speaker)
        heard = EncodedRecording(torch.from_numpy(tokens), torch.from_numpy(speaker))
        # Where it cannot be kept, the next start hears the recording again.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, save({"tokens": heard.tokens, "speaker": heard.speaker}))
        return heard

    def _require_fit(self, tokens: np.ndarray, speaker: np.ndarray) -> None:
        """Raise :class:`CheckpointError` if the other models cannot take what was heard."""
        apart = "they do not belong together. Download the official release again."
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < self._codes:
            raise CheckpointError(
                f"{self._encoder.tokenizer_path} gives the speech token {tokens.max()}, but the language model knows "
                f"{self._codes} of them: {apart}"
            )
        if len(speaker) != self._speaker_width:
            raise CheckpointError(
                f"{self._encoder.speaker_path} gives {len(speaker)} numbers for a speaker, but the flow takes "
                f"{self._speaker_width}: {apart}"
            )

    @staticmethod
    def _prepared(recording: Recording, heard: EncodedRecording) -> VoicePrompt:
        mel = speech_mel(resample(torch.from_numpy(recording.samples), recording.sample_rate, SPEECH_RATE))
        # Both clocks must agree; the shorter one decides.
        tokens = min(len(mel) // FRAMES_PER_TOKEN, len(heard.tokens))
        if not tokens:
            raise AudioError("The reference recording is too short; choose a longer one.")
        acoustic = AcousticPrompt(
            heard.tokens[None, :tokens], mel[None, : tokens * FRAMES_PER_TOKEN], heard.speaker[None]
        )
        return VoicePrompt(acoustic, recording.seconds, recording.notes)


def _read(path: Path) -> EncodedRecording | None:
    """The output cached at ``path``, or ``None`` if it is absent or unusable."""
    try:
        found = load(path.read_bytes())
        heard = EncodedRecording(found["tokens"], found["speaker"])
    except (OSError, SafetensorError, KeyError):
        return None
    sound = heard.tokens.dtype == torch.int64 and heard.tokens.dim() == heard.speaker.dim() == 1
    return heard if sound and heard.speaker.isfinite().all() else None
