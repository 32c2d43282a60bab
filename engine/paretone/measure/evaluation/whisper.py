"""Word error rate by Whisper-large-v3, as the evaluation of Seed-TTS measures it for English.

Followed: ``run_wer.py`` of BytedanceSpeech/seed-tts-eval: the model as transformers has it, in single precision,
greedy, told that it hears English; texts without punctuation other than apostrophes, in lower case. What differs:
recordings are resampled by our own band-limited filter instead of in the Fourier domain.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretone.audio.resampling import resample
from paretone.errors import AudioError, CheckpointError, TextError
from paretone.measure.evaluation.judges import Verdict
from paretone.models.base import Voice
from paretone.reading import shown
from paretone.wording import beyond

RATE = 16_000
LONGEST_SECONDS = 30.0
"""Whisper's window in seconds; longer recordings would be judged by their first half minute."""
_CHINESE = "".join(map(chr, [*range(0x3001, 0x3004), *range(0x3008, 0x3012), *range(0x3014, 0x3020)]))
_WIDE = "".join(
    map(chr, [*range(0xFF01, 0xFF10), *range(0xFF1A, 0xFF21), *range(0xFF3B, 0xFF41), *range(0xFF5B, 0xFF65)])
)
PUNCTUATION = frozenset(string.punctuation + _CHINESE + _WIDE + "\u3000〰〾〿–—‘’‛“”„‟…‧﹏﹑﹔·") - {"'"}
"""Punctuation removed from texts: ASCII's and Chinese."""


def load(texts: Sequence[str], folder: Path, device: str) -> WhisperJudge:
    """The judge from the files in ``folder``."""
    return WhisperJudge(folder, device)


def normalised(text: str) -> str:
    """``text`` without punctuation, in lower case; two spaces around a removed mark become one."""
    return "".join(letter for letter in text if letter not in PUNCTUATION).replace("  ", " ").lower().strip()


class WhisperJudge:
    """Whisper, loaded. Raises :class:`CheckpointError` for files that it cannot be made of."""

    def __init__(self, folder: Path, device: str) -> None:
        import jiwer
        from transformers import WhisperForConditionalGeneration, WhisperProcessor

        self._jiwer = jiwer
        self._device = device
        try:
            self._processor = WhisperProcessor.from_pretrained(folder, local_files_only=True)
            model: Any = WhisperForConditionalGeneration.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
            )
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise CheckpointError(
                f"Whisper could not be loaded from {folder} ({error}); get its files again."
            ) from error
        # Any: transformers' own types hide that models are called, moved and generate.
        self._model: Any = model.to(device).eval()

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Word errors in a recording of ``text``. Raises :class:`AudioError` for one that Whisper would not hear
        out."""
        words = normalised(text)
        if not words:
            raise TextError(f"{shown(text)} has no words that could be judged.")
        if len(samples) > LONGEST_SECONDS * rate:
            raise AudioError(
                f"The recording lasts {beyond(len(samples) / rate)}, and Whisper hears {LONGEST_SECONDS:.0f} s at "
                "once; judge shorter sentences."
            )
        heard = self._transcribed(resample(samples, rate, RATE))
        found = self._jiwer.process_words(words, normalised(heard))
        edits = found.substitutions + found.deletions + found.insertions
        return Verdict("whisper", {"edits": float(edits), "words": float(len(words.split()))}, heard.strip())

    @torch.inference_mode()
    def _transcribed(self, samples: np.ndarray) -> str:
        given = self._processor(samples, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
        features = given.input_features.to(self._device, self._model.dtype)
        tokens = self._model.generate(
            features, attention_mask=given.attention_mask.to(self._device), language="en", task="transcribe"
        )
        return self._processor.batch_decode(tokens, skip_special_tokens=True)[0]
