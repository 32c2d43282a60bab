"""CosyVoice 2's three sets of features of a recording: log-mel frames for the flow, Whisper's log-mel frames for
the speech tokenizer, Kaldi's filter bank for the speaker embedding.

Front ends of ``cli/frontend.py`` and ``utils/file_utils.py`` upstream, which take them from Matcha-TTS, openai-whisper
and torchaudio. All take mono samples of about −1 to 1; Kaldi's is not scaled to 16 bits, as upstream does not either.
"""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.audio.mel import BIGVGAN, MelFrontEnd, slaney_filterbank

SPEECH_RATE = 24000
"""Sample rate of the flow and the vocoder."""
ENCODER_RATE = 16000
"""Sample rate of speech tokenizer and speaker embedding."""
MEL = MelFrontEnd(BIGVGAN, SPEECH_RATE, window=1920, hop=480, bands=80, highest=8000.0)
"""50 frames a second."""

WHISPER_WINDOW, WHISPER_HOP, WHISPER_BANDS = 400, 160, 128
WHISPER_RANGE = 8.0
"""Powers of ten that Whisper's frames span, downwards from the loudest value."""

KALDI_WINDOW, KALDI_HOP, KALDI_TRANSFORM, KALDI_BANDS = 400, 160, 512, 80
KALDI_LOWEST = 20.0
PRE_EMPHASIS = 0.97
POVEY_POWER = 0.85


def speech_mel(samples: Tensor) -> Tensor:
    """(n,) at 24 kHz to (frames, 80) natural-log mel, 50 frames a second."""
    return MEL(samples)[0]


def whisper_mel(samples: Tensor) -> Tensor:
    """(n,) at 16 kHz to (128, frames), 100 frames a second, not filled up to 30 s as Whisper itself would."""
    window = torch.hann_window(WHISPER_WINDOW, device=samples.device)
    spectrum = torch.stft(samples, WHISPER_WINDOW, WHISPER_HOP, window=window, return_complex=True)
    # The last frame lies after the end.
    power = spectrum[:, :-1].abs().square()
    filters = slaney_filterbank(ENCODER_RATE, WHISPER_WINDOW, WHISPER_BANDS, str(samples.device))
    levels = (filters.T @ power).clamp(min=1e-10).log10()
    return (levels.clamp(min=levels.max() - WHISPER_RANGE) + 4) / 4


def kaldi_filter_bank(samples: Tensor) -> Tensor:
    """(n,) at 16 kHz to (frames, 80) natural-log energies, 100 frames a second: Kaldi's ``fbank`` with its defaults but
    without dither. Frames lie wholly within the recording."""
    frames = samples.unfold(0, KALDI_WINDOW, KALDI_HOP)
    frames = frames - frames.mean(dim=1, keepdim=True)
    frames = frames - PRE_EMPHASIS * F.pad(frames[:, None], (1, 0), mode="replicate")[:, 0, :-1]
    window = torch.hann_window(KALDI_WINDOW, periodic=False, device=samples.device).pow(POVEY_POWER)
    power = torch.fft.rfft(frames * window, KALDI_TRANSFORM).abs().square()
    energies = power @ _kaldi_filters(str(samples.device))
    return energies.clamp(min=torch.finfo(torch.float32).eps).log()


def speaker_features(samples: Tensor) -> Tensor:
    """(n,) at 16 kHz to (frames, 80): Kaldi's filter bank without its mean over time."""
    bank = kaldi_filter_bank(samples)
    return bank - bank.mean(dim=0, keepdim=True)


@functools.lru_cache(maxsize=2)
@torch.inference_mode(False)  # What is kept must also serve training.
def _kaldi_filters(device: str) -> Tensor:
    """(257, 80) triangles, equally spaced and straight on Kaldi's mel scale, 1127 · ln(1 + f / 700), from 20 Hz to half
    the rate. The bin at half the rate has none."""
    bins = KALDI_TRANSFORM // 2
    lowest, highest = (1127.0 * math.log(1.0 + limit / 700.0) for limit in (KALDI_LOWEST, ENCODER_RATE / 2))
    step = (highest - lowest) / (KALDI_BANDS + 1)
    # In float32, as torchaudio has it: narrow triangles catch few bins, and their rounding shows.
    left = lowest + torch.arange(KALDI_BANDS) * step
    mels = 1127.0 * torch.log(1.0 + torch.arange(bins) * (ENCODER_RATE / KALDI_TRANSFORM) / 700.0)[:, None]
    triangles = torch.minimum((mels - left) / step, (left + 2 * step - mels) / step).clamp(min=0)
    return F.pad(triangles, (0, 0, 0, 1)).to(device)
