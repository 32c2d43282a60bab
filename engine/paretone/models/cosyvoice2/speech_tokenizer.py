"""The two models for recordings that are published only as ONNX: speech tokens, and the speaker embedding.

Run by the package ``onnxruntime`` (optional extra ``cosyvoice``), always on the CPU: on GPUs they are no faster, and
the embedding differs. They are loaded with the first recording, because the tokenizer alone takes half a gigabyte.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone import device as devices
from paretone.audio.mel import BIGVGAN, MelFrontEnd, whisper_mel
from paretone.errors import CheckpointError
from paretone.extras import needing
from paretone.models.cosyvoice2.config import INSTALL
from paretone.models.files.checkpoints import fingerprint, require_part
from paretone.observer import Check
from paretone.reading import readable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


# CosyVoice 2's three features of a recording: log-mel frames for the flow, Whisper's log-mel frames for the speech
# tokenizer, Kaldi's filter bank for the speaker embedding.
#
# Front ends of ``cli/frontend.py`` and ``utils/file_utils.py`` upstream, which take them from Matcha-TTS,
# openai-whisper and torchaudio. All take mono samples of about −1 to 1; as upstream, Kaldi's is not scaled to 16 bits.
SPEECH_RATE = 24000
"""Sample rate of the flow and the vocoder."""
ENCODER_RATE = 16000
"""Sample rate of speech tokenizer and speaker embedding."""
MEL = MelFrontEnd(BIGVGAN, SPEECH_RATE, window=1920, hop=480, bands=80, highest=8000.0)
"""50 frames per second."""

WHISPER_BANDS = 128
KALDI_WINDOW, KALDI_HOP, KALDI_TRANSFORM, KALDI_BANDS = 400, 160, 512, 80
KALDI_LOWEST = 20.0
PRE_EMPHASIS = 0.97
POVEY_POWER = 0.85


def kaldi_filter_bank(samples: Tensor) -> Tensor:
    """(n,) at 16 kHz to (frames, 80) natural-log energies, 100 frames per second: Kaldi's ``fbank`` with its defaults
    but without dither. Frames lie entirely within the recording."""
    frames = samples.unfold(0, KALDI_WINDOW, KALDI_HOP)
    frames = frames - frames.mean(dim=1, keepdim=True)
    frames = frames - PRE_EMPHASIS * F.pad(frames[:, None], (1, 0), mode="replicate")[:, 0, :-1]
    window = torch.hann_window(KALDI_WINDOW, periodic=False, device=samples.device).pow(POVEY_POWER)
    power = torch.fft.rfft(frames * window, KALDI_TRANSFORM).abs().square()
    energies = power @ _kaldi_filters(str(samples.device))
    return energies.clamp(min=torch.finfo(torch.float32).eps).log()


def speaker_features(samples: Tensor) -> Tensor:
    """(n,) at 16 kHz to (frames, 80): Kaldi's filter bank minus its mean over time."""
    bank = kaldi_filter_bank(samples)
    return bank - bank.mean(dim=0, keepdim=True)


@functools.lru_cache(maxsize=2)
@torch.inference_mode(False)  # Cached tensors must also be usable in training.
def _kaldi_filters(device: str) -> Tensor:
    """(257, 80) triangles, linear on Kaldi's mel scale, 1127 · ln(1 + f / 700), from 20 Hz to half the rate (zero)."""
    bins = KALDI_TRANSFORM // 2
    lowest, highest = (1127.0 * math.log(1.0 + limit / 700.0) for limit in (KALDI_LOWEST, ENCODER_RATE / 2))
    step = (highest - lowest) / (KALDI_BANDS + 1)
    # In float32, as in torchaudio: narrow triangles cover few bins, and their rounding matters.
    left = lowest + torch.arange(KALDI_BANDS) * step
    mels = 1127.0 * torch.log(1.0 + torch.arange(bins) * (ENCODER_RATE / KALDI_TRANSFORM) / 700.0)[:, None]
    triangles = torch.minimum((mels - left) / step, (left + 2 * step - mels) / step).clamp(min=0)
    return F.pad(triangles, (0, 0, 0, 1)).to(device)


TOKENIZER, SPEAKER = "speech_tokenizer_v2.onnx", "campplus.onnx"


class RecordingEncoder:
    """Both models of one release folder."""

    def __init__(self, folder: Path, tokenizer: str = TOKENIZER) -> None:
        """Raises :class:`CheckpointError` if a file or the package is missing; reads nothing yet."""
        with needing(CheckpointError, "CosyVoice encodes recordings with the package onnxruntime", INSTALL):
            import onnxruntime  # noqa: F401
        self.tokenizer_path, self.speaker_path = folder / tokenizer, folder / SPEAKER
        self._tokenizer, self._speaker = OnnxModel(self.tokenizer_path), OnnxModel(self.speaker_path)

    def fingerprints(self, check: Check = lambda: None) -> tuple[str, str]:
        """SHA-256 of both files; ``check`` may raise to cancel."""
        return fingerprint(self.tokenizer_path, check), fingerprint(self.speaker_path, check)

    def tokens(self, samples: Tensor) -> np.ndarray:
        """Speech tokens (n,) int64 of samples (m,) at 16 kHz, 25 per second. Raises :class:`CheckpointError`."""
        features = whisper_mel(samples, WHISPER_BANDS)
        found = self._tokenizer(features[None].numpy(), np.array([features.shape[1]], np.int32))
        return found.astype(np.int64).ravel()

    def speaker(self, samples: Tensor) -> np.ndarray:
        """Speaker embedding (width,) float32 of samples (m,) at 16 kHz. Raises :class:`CheckpointError`."""
        return self._speaker(speaker_features(samples)[None].numpy()).astype(np.float32).ravel()


class OnnxModel:
    """An ONNX file, loaded on its first run."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`CheckpointError` if the file is missing."""
        require_part(path, "download the official release again")
        self.path = path

    def __call__(self, *given: np.ndarray) -> np.ndarray:
        """The first output. Raises :class:`CheckpointError` if the file is damaged or another model's."""
        with readable(
            CheckpointError, f"{self.path} cannot be used", "download it from the official release again", Exception
        ):
            names = (one.name for one in self._session.get_inputs())
            return self._session.run(None, dict(zip(names, given, strict=True)))[0]

    @functools.cached_property
    def _session(self) -> InferenceSession:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = devices.thread_count()
        options.log_severity_level = 4  # No output on the terminal: errors are raised.
        return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])
