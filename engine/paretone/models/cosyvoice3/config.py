"""Constants, options and sizes of CosyVoice 3. The defaults are the release's: ``cosyvoice3.yaml`` of
``FunAudioLLM/Fun-CosyVoice3-0.5B-2512``. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.models.cosyvoice2.config import FlowSizes
from paretone.models.f5.config import BackboneConfig


def estimator_sizes(width: int = 1024, layers: int = 22, heads: int = 16, head_width: int = 64) -> BackboneConfig:
    """F5's layers with positions in the first head only."""
    return BackboneConfig("DiT", width, layers, heads, head_width, ff_mult=2, pe_attn_head=1)


@dataclass(frozen=True)
class FlowConfig(FlowSizes):
    """Speech tokens to mel frames."""

    estimator: BackboneConfig = estimator_sizes()
    look_ahead_channels: int = 1024
    look_ahead: int = 3
    chunk: int = 25
