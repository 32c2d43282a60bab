"""Constants, options and sizes of CosyVoice 3. The defaults are the release's: ``cosyvoice3.yaml`` of
``FunAudioLLM/Fun-CosyVoice3-0.5B-2512``. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from paretone.models.cosyvoice2.config import FlowSizes
from paretone.models.f5.config import BackboneConfig

ESTIMATOR = BackboneConfig("DiT", dim=1024, depth=22, heads=16, pe_attn_head=1)
"""F5's layers, with positions in the first head only."""


@dataclass(frozen=True)
class FlowConfig(FlowSizes):
    """Speech tokens to mel frames."""

    estimator: BackboneConfig = ESTIMATOR
    look_ahead_channels: int = 1024
    look_ahead: int = 3
    chunk: int = 25
