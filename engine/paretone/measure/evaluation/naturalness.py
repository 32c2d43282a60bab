"""Naturalness: the mean opinion score, 1 to 5, predicted by DistillMOS.

B. Stahl and H. Gamper, "Distillation and Pruning for Scalable Self-Supervised Representation-Based Speech Quality
Assessment", ICASSP 2025. The network is built here; its weights are read from the package ``distillmos`` (0.9.1, MIT),
whose code is not imported, as it needs torchaudio for reading files.

Six convolutions over the compressed complex spectrum of 7.68 s, seven transformer layers, and a learned weighted mean
over time. Longer recordings are judged in windows at most one second apart, and averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.errors import CheckpointError
from paretone.measure.evaluation.judges import Verdict, package_file, speech_in
from paretone.models.base import Voice
from paretone.models.files.checkpoints import loaded_strictly, read_checkpoint
from paretone.observer import may_stop

NAME = "naturalness"
PACKAGE, FILE = "distillmos", "weights/distill_mos_v7.pt"
WINDOW, HOP = 320, 160
LENGTH = 122_880
"""Samples per window: 7.68 s."""
FURTHEST = 16_000
"""Maximum hop between windows in samples: 1 s."""
MOST_WINDOWS = 60
"""Recordings longer than about a minute are judged in this many windows, spread evenly."""
CHANNELS = (64, 64, 128, 256, 256, 256)
FRAMES, WIDTH, HEADS, LAYERS = 384, 200, 8, 7
_FEATURES = 1024
"""Numbers per frame after the convolutions: 256 channels × 4 rows left of 161."""


def load(texts: Sequence[str], folder: Path, device: str) -> NaturalnessJudge:
    """Load the judge with the package's weights. Raises :class:`PlainError`."""
    return NaturalnessJudge(read_network(package_file(PACKAGE, FILE)).to(device), device)


def _spectrum(samples: Tensor) -> Tensor:
    """(B, n) to (B, 2, 161, frames): real and imaginary parts, their magnitude raised to the power of 0.3."""
    margin = (WINDOW - HOP) // 2
    padded = functional.pad(samples, (margin, margin), mode="reflect")
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.view_as_real(torch.stft(padded, WINDOW, HOP, window=window, center=False, return_complex=True))
    magnitude = spectrum.square().sum(-1, keepdim=True).sqrt().clamp(min=1e-12)
    return (magnitude**0.3 * spectrum / magnitude).permute(0, 3, 1, 2)


class _Convolutions(nn.Module):
    """(B, 2, 161, frames) to (B, frames / 2, 1024)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 2
        for index, channels in enumerate(CHANNELS):
            stride = 2 if index else 1, 2 if index == len(CHANNELS) - 1 else 1
            layers += [nn.Conv2d(before, channels, 3, stride, padding=(0, 1)), nn.LeakyReLU(0.1)]
            before = channels
        self.cnn = nn.Sequential(*layers)

    def forward(self, spectrum: Tensor) -> Tensor:
        return self.cnn(spectrum).flatten(1, 2).transpose(1, 2)


class _Positions(nn.Module):
    """Adds sinusoidal positions, stored in the weights file."""

    pe: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pe", torch.zeros(1, FRAMES, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe


class _Transformer(nn.Module):
    """(B, 384, 1024) to (B, 384, 200)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(_FEATURES)
        self.position_encoding = _Positions()
        self.linear_proj = nn.Linear(_FEATURES, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        return self.transformer_encoder(self.position_encoding(self.linear_proj(x)))


class _Pooling(nn.Module):
    """(B, 384, 200) to (B, 1): learned weighted mean over time, then one number."""

    def __init__(self) -> None:
        super().__init__()
        self.linear1 = nn.Linear(WIDTH, 2 * WIDTH)
        self.linear2 = nn.Linear(2 * WIDTH, 1)
        self.linear3 = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.linear2(functional.relu(self.linear1(x))).softmax(1)
        return self.linear3((weights * x).sum(1))


class _Head(nn.Module):
    """(B, 384, 1024) to (B, 1), 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_input = nn.BatchNorm1d(_FEATURES)
        self.transformer = _Transformer()
        self.norm_trans = nn.BatchNorm1d(WIDTH)
        self.pool = _Pooling()

    def forward(self, x: Tensor) -> Tensor:
        x = self.transformer(self.norm_input(x.transpose(1, 2)).transpose(1, 2))
        return torch.sigmoid(self.pool(self.norm_trans(x.transpose(1, 2)).transpose(1, 2)))


class NaturalnessNetwork(nn.Module):
    """One window to its score. Modules are named as in the weights file."""

    def __init__(self) -> None:
        super().__init__()
        self.cnn = _Convolutions()
        self.transformer_pool_attn = _Head()

    def forward(self, samples: Tensor) -> Tensor:
        """(B, 122880) at 16 kHz, of any level, to (B,), 1 to 5."""
        samples = samples / (samples.abs().amax(1, keepdim=True) + 1e-8)
        return 1 + 4 * self.transformer_pool_attn(self.cnn(_spectrum(samples))).squeeze(1)


def read_network(path: Path) -> NaturalnessNetwork:
    """Network with the weights at ``path``. Raises :class:`CheckpointError` with the missing names."""
    weights = read_checkpoint(path).get("model")
    if not isinstance(weights, dict):
        raise CheckpointError(f"{path} holds no weights of DistillMOS; install the package {PACKAGE} again.")
    return loaded_strictly(NaturalnessNetwork, weights, str(path)).eval()


def windows(samples: np.ndarray) -> np.ndarray:
    """Windows (count, 122880) of a recording (n,) at 16 kHz, zero-padded if it is shorter than one."""
    beyond = len(samples) - LENGTH
    if beyond <= 0:
        return np.pad(samples, (0, -beyond))[None]
    count = min(math.ceil(beyond / FURTHEST) + 1, MOST_WINDOWS)
    return np.stack([samples[start : start + LENGTH] for start in (np.linspace(0, 1, count) * beyond).astype(int)])


class NaturalnessJudge:
    def __init__(self, network: NaturalnessNetwork, device: str = "cpu") -> None:
        self._network, self._device = network.eval(), device

    @torch.inference_mode()
    def score(self, samples: np.ndarray) -> float:
        """Naturalness of a recording (n,) at 16 kHz, untrimmed. Can be stopped before each window."""
        scores = []
        for window in windows(samples):
            may_stop()
            scores.append(float(self._network(torch.from_numpy(window)[None].to(self._device))[0]))
        return float(np.mean(scores))

    def naturalness(self, samples: np.ndarray, rate: int) -> float:
        """Naturalness, 1 to 5, of the speech in mono ``samples`` (n,) at ``rate`` Hz. Raises :class:`AudioError`."""
        return self.score(speech_in(samples, rate))

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Naturalness of the recording. Raises :class:`AudioError`."""
        return Verdict(NAME, {NAME: self.naturalness(samples, rate)})
