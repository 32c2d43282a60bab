"""Sizes of what turns speech tokens into audio. Torch-free.

The defaults are the release: ``cosyvoice2.yaml`` of ``FunAudioLLM/CosyVoice2-0.5B``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class EncoderConfig:
    """The conformer that gives every speech token two mel frames."""

    width: int = 512
    heads: int = 8
    feed_forward: int = 2048
    layers: int = 6
    upsampled_layers: int = 4
    """Layers at the rate of the mel spectrogram."""
    look_ahead: int = 3
    """Later tokens that a token's frames depend on, after those of its own chunk."""
    chunk: int = 25
    """Tokens of a chunk: attention sees its own chunk and all before it."""


@dataclass(frozen=True)
class EstimatorConfig:
    """The network that estimates the velocity of the flow."""

    channels: int = 256
    heads: int = 8
    head_width: int = 64
    blocks: int = 4
    """Transformer blocks of a stage."""
    middle_stages: int = 12


@dataclass(frozen=True)
class FlowConfig:
    """Speech tokens to mel frames."""

    tokens: int = 6561
    speaker_width: int = 192
    bands: int = 80
    encoder: EncoderConfig = EncoderConfig()
    estimator: EstimatorConfig = EstimatorConfig()
    steps: int = 10
    guidance: float = 0.7
    """Strength of classifier-free guidance of the velocity; 0 is none."""


FRAMES_PER_TOKEN = 2
TOKEN_RATE = 25
"""Speech tokens of a second."""


@dataclass(frozen=True)
class HiftConfig:
    """Mel frames to audio."""

    bands: int = 80
    channels: int = 512
    """Before the first upsampling; each halves them."""
    pitch_channels: int = 512
    upsampling: tuple[int, ...] = (8, 5, 3)
    upsampling_kernels: tuple[int, ...] = (16, 11, 7)
    kernels: tuple[int, ...] = (3, 7, 11)
    source_kernels: tuple[int, ...] = (7, 7, 11)
    dilations: tuple[int, ...] = (1, 3, 5)
    window: int = 16
    """Samples of a frame of the inverse short-time Fourier transform."""
    hop: int = 4
    harmonics: int = 8
    """Overtones of the source above the fundamental."""
    sample_rate: int = 24000
    float32_phases: bool = False
    """Whether the phases of the source are rounded as upstream, for comparisons with it."""

    @property
    def samples_per_frame(self) -> int:
        """Samples of one mel frame."""
        return prod(self.upsampling) * self.hop
