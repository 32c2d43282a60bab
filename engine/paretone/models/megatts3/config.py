"""Sizes of MegaTTS 3's diffusion transformer, and the options of its sampler. Torch-free.

The released checkpoint has no complete configuration file: all sizes except the head width follow from the shapes of
its weights. Names are those of ByteDance's ``tts/modules/llm_dit`` where they exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from paretone.errors import CheckpointError
from paretone.models.files.config_file import WeightShapes
from paretone.sampling.options import CROSS_FADE, QUICK_START, SPACING, SPEED, STEPS, SWAY
from paretone.setting.knobs import amount

LAYOUT = "megatts3"
"""Layout of the official checkpoint, in declarations."""
HEAD_WIDTH = 64
LATENT_STRIDE = 4
"""Duration frames (mel frames) per latent."""
LATENTS = ".npy"
"""Suffix of a released voice's latents, next to the recording of the same name."""
ENCODER = "wavvae/model_only_last.ckpt"
"""Place of an encoder in the official folder; the release does not include it."""


@dataclass(frozen=True)
class DiTConfig:
    """Sizes of an architecture; the defaults are the release's."""

    dim: int = 1024
    layers: int = 24
    heads: int = 16
    ff_hidden: int = 2048
    """Inner width of the feed-forward; officially 256·⌈2·dim / 256⌉."""
    latent: int = 32
    """Channels of a latent."""
    local_cond: int = 512
    """Width of the projection of prompt latent and prompt mask."""
    ctx_mask: int = 16
    """Width of the projected prompt mask."""
    phones: int = 302
    """Rows of the phone table; the last is for unknown phones."""
    tones: int = 32
    """Rows of the tone table; the last is for unknown tones."""
    phone_layers: int = 6
    phone_heads: int = 4
    phone_ff_hidden: int = 2048
    phone_kernel: int = 3
    """Phones in the kernel of the phone encoder's feed-forward."""
    phone_window: int = 4
    """Maximum distance that the phone encoder's attention distinguishes."""

    @classmethod
    def from_shapes(cls, shapes: Mapping[str, tuple[int, ...]], where: str, heads: int | None = None) -> DiTConfig:
        """Sizes from the shapes of a state dict with official names. ``heads``: 64 wide by default, as released. Raises
        :class:`CheckpointError` that names a weight that is missing or does not fit its neighbours."""
        shape = WeightShapes(shapes, where, "a MegaTTS 3 diffusion transformer")
        dim, latent = shape("x_prenet.weight", 2)
        phone_first = "ph_encoder.encoder"
        _, distances, phone_head = shape(f"{phone_first}.attn_layers.0.emb_rel_k", 3)
        phone_ff_hidden, _, phone_kernel = shape(f"{phone_first}.ffn_layers.0.conv_1.weight", 3)
        heads = heads or dim // HEAD_WIDTH
        if heads < 1 or dim % heads or dim % phone_head:
            raise CheckpointError(f"{where}: a width of {dim} cannot be split into {heads or 'such'} heads.")
        return cls(
            dim=dim,
            layers=shape.count(r"encoder\.layers\.(\d+)\."),
            heads=heads,
            ff_hidden=shape("encoder.layers.0.feed_forward.w1.weight", 2)[0],
            latent=latent,
            local_cond=shape("local_cond_project.weight", 2)[0],
            ctx_mask=shape("ctx_mask_proj.weight", 2)[0],
            phones=shape("ph_encoder.emb.weight", 2)[0],
            tones=shape("tone_embed.weight", 2)[0],
            phone_layers=shape.count(r"ph_encoder\.encoder\.attn_layers\.(\d+)\."),
            phone_heads=dim // phone_head,
            phone_ff_hidden=phone_ff_hidden,
            phone_kernel=phone_kernel,
            phone_window=distances // 2,
        )


def no_latents(audio: Path) -> str:
    """Explain why the public release cannot use a recording without latents, and what to do."""
    return (
        f"The public release of MegaTTS 3 has no encoder for new recordings, and {audio.name} has no latents: the "
        f"file {audio.with_suffix(LATENTS)} is missing. Put the latents that were released with this recording there, "
        f"choose one of the released voices, or put your own encoder file at {ENCODER} in the model's folder."
    )


_SAMPLER = (
    STEPS,
    replace(SPACING, default="uniform", titles=("EPSS where a table exists (not official here)", "Uniform (official)")),
    SWAY,
    amount(
        "intelligibility",
        "Intelligibility",
        "Guidance strength of the text; 1 is none. With both at 1, one branch runs instead of three.",
        default=1.6,
        between=(0.0, 5.0),
        trajectory=True,
        symbol="p",
        step=0.1,
    ),
    amount(
        "similarity",
        "Similarity",
        "Guidance strength of the prompt's voice; 1 is none.",
        default=2.5,
        between=(0.0, 5.0),
        trajectory=True,
        symbol="t",
        step=0.1,
    ),
    amount(
        "overshoot",
        "Overshoot",
        "How far every step overshoots before fresh noise takes it back, in steps; 0 adds no noise.",
        default=3.0,
        between=(0.0, 5.0),
        trajectory=True,
        symbol="c",
        step=0.5,
    ),
    SPEED,
    replace(CROSS_FADE, default=0.16),
)

OPTIONS = (
    *_SAMPLER,
    amount(
        "disturbance",
        "Duration noise",
        "Random change of every phone's duration, up to this share, equal for all takes of a text. "
        "The official code uses 10 %, random each time; 0 keeps the predicted durations.",
        default=0.0,
        between=(0.0, 50.0),
        unit="%",
        step=5.0,
    ),
)
"""Sampler options of the release, with the official command line's defaults except for the disturbance."""

BUNDLED_OPTIONS = (*_SAMPLER, QUICK_START)
"""Options of the bundled model, whose durations come from a table."""
