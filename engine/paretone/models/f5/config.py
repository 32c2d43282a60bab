"""Architectures and options of the F5-TTS family. Torch-free.

Source: the official ``configs/*.yaml`` of SWivid/F5-TTS 1.1.20; v0 and v1 of a size have equal tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from paretone.errors import CheckpointError
from paretone.models.files.config_file import ConfigFile
from paretone.reading import shown
from paretone.sampling.options import CROSS_FADE, QUICK_START, SPACING, SPEED, STEPS, SWAY
from paretone.setting.knobs import Choice, amount

LAYOUT = "f5-tts"
"""Layout of the official checkpoints, in declarations."""
SIDECAR = "model.yaml"
"""Description of an architecture, next to its weights."""
CHARACTERS, NATURAL_PHONES = "characters", "natural phones"
"""Text front ends, by their name in :data:`SIDECAR`."""
MEL_BANDS = 100
SAMPLE_RATE = 24_000
HOP = 256
HEAD_WIDTH = 64


@dataclass(frozen=True)
class BackboneConfig:
    """An architecture. Names are the official configuration's, except where noted."""

    backbone: str
    """``DiT`` (F5) or ``UNetT`` (E2)."""
    dim: int
    depth: int
    heads: int
    dim_head: int = HEAD_WIDTH
    ff_mult: int = 2
    text_dim: int = MEL_BANDS
    conv_layers: int = 0
    text_mask_padding: bool = False
    pe_attn_head: int | None = None
    """Number of heads with rotary positions, from the first; ``None``: all."""
    qk_norm: str | None = None
    long_skip_connection: bool = False
    text_embedding_average_upsampling: bool = False
    mel_dim: int = MEL_BANDS
    text_num_embeds: int = 0
    """Number of vocabulary entries; the embedding has one more row for filler."""

    @classmethod
    def from_official(
        cls, backbone: str, entries: ConfigFile | Mapping[str, object], text_num_embeds: int, where: str = ""
    ) -> BackboneConfig:
        """Parse the ``arch`` part of an official configuration file, or its entries, called ``where``. Raises
        :class:`CheckpointError` that names an unsupported entry."""
        file = ConfigFile.of(entries, where)
        where, arch = file.where, file.entries
        if backbone not in ("DiT", "UNetT"):
            raise CheckpointError(f"{where} describes a {shown(backbone)} backbone; DiT and UNetT are supported.")
        known = {one.name for one in fields(cls)} - {"backbone", "text_num_embeds"}
        ignored = {"dropout", "attn_backend", "attn_mask_enabled", "checkpoint_activations"}
        unknown = sorted(set(arch) - known - ignored)
        if unknown:
            raise CheckpointError(f"{where} has an architecture entry {shown(unknown[0])} that is not supported.")
        if file.flag("attn_mask_enabled", False):
            raise CheckpointError(
                f"{where} enables attn_mask_enabled, which no released model uses and is not supported."
            )
        if arch.get("qk_norm") not in (None, "rms_norm"):
            raise CheckpointError(f"{where} has qk_norm {shown(arch['qk_norm'])}; null and rms_norm are supported.")
        averaged, padded = file.flag("text_embedding_average_upsampling", False), file.flag("text_mask_padding", True)
        if averaged and not padded:
            raise CheckpointError(f"{where}: text_embedding_average_upsampling needs text_mask_padding.")
        bands, heads = file.number("mel_dim", MEL_BANDS), file.number("heads")
        rotated = file.number("pe_attn_head", most=heads) if file.has("pe_attn_head") else None
        return cls(
            backbone=backbone,
            dim=file.number("dim"),
            depth=file.number("depth"),
            heads=heads,
            dim_head=file.number("dim_head", HEAD_WIDTH),
            ff_mult=file.number("ff_mult", 4),
            text_dim=file.number("text_dim", bands),
            conv_layers=file.number("conv_layers", 0, least=0),
            text_mask_padding=padded,
            pe_attn_head=rotated,
            qk_norm=file.text("qk_norm") if file.has("qk_norm") else None,
            long_skip_connection=file.flag("long_skip_connection", False),
            text_embedding_average_upsampling=averaged,
            mel_dim=bands,
            text_num_embeds=text_num_embeds,
        )


def _f5(dim: int, depth: int, heads: int, first_version: bool) -> BackboneConfig:
    return BackboneConfig(
        "DiT",
        dim,
        depth,
        heads,
        text_dim=512,
        conv_layers=4,
        text_mask_padding=not first_version,
        pe_attn_head=1 if first_version else None,
    )


VARIANTS: Mapping[str, BackboneConfig] = {
    "F5TTS_v1_Base": _f5(1024, 22, 16, first_version=False),
    "F5TTS_Base": _f5(1024, 22, 16, first_version=True),
    "F5TTS_v1_Small": _f5(768, 18, 12, first_version=False),
    "F5TTS_Small": _f5(768, 18, 12, first_version=True),
    "E2TTS_Base": BackboneConfig("UNetT", 1024, 24, 16, ff_mult=4, pe_attn_head=1),
    "E2TTS_Small": BackboneConfig("UNetT", 768, 20, 12, ff_mult=4, pe_attn_head=1),
}
"""Released architectures by the name of their configuration file and folder."""

OPTIONS = (
    STEPS,
    SPACING,
    SWAY,
    amount(
        "guidance",
        "Guidance",
        "Strength of classifier-free guidance as the official code counts it: v + g·(v − v₀). 0 runs one branch only.",
        default=2.0,
        between=(0.0, 10.0),
        trajectory=True,
        symbol="g",
        step=0.1,
    ),
    Choice(
        "solver",
        "Solver",
        "Euler evaluates the backbone once per step, midpoint twice.",
        default="euler",
        trajectory=True,
        values=("euler", "midpoint"),
        titles=("Euler", "Midpoint"),
    ),
    SPEED,
    CROSS_FADE,
    QUICK_START,
)
