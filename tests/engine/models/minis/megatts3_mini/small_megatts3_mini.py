"""A model in the layout of the bundled MegaTTS 3, with random weights and small sizes, written to a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from engine.models.megatts3.config import DiTConfig
from engine.models.megatts3.dit import MegaDiT
from engine.models.minis.megatts3_mini.mel_codec import MelCodec, MelCodecConfig
from engine.training.recipes.mel_codec import export_codec
from tests.engine.front_end.arctic import DURATION_FILE

LAYERS = 3
SMALL_DIT = DiTConfig(
    dim=64, layers=LAYERS, heads=1, ff_hidden=96, local_cond=24, ctx_mask=4, phone_layers=1, phone_ff_hidden=64
)
SMALL_CODEC = MelCodecConfig(width=32, inner_width=48, frame_layers=1, latent_layers=1)


def write_bundled(root: Path) -> None:
    """All parts; the vocoder is the one that ships."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        backbone, codec = MegaDiT(SMALL_DIT), MelCodec(SMALL_CODEC).eval()
        torch.nn.init.normal_(backbone.postnet.weight, std=0.1)
        torch.nn.init.normal_(codec.decoder["leave"].weight, std=0.3)
    codec.mel_mean.fill_(2.0)  # About as loud as speech.
    weights = {name: value.half().contiguous() for name, value in backbone.state_dict().items()}
    (root / "diffusion_transformer").mkdir(parents=True)
    save_file(weights, root / "diffusion_transformer" / "model.safetensors")
    export_codec(root / "wavvae", codec)
    shutil.copy(DURATION_FILE, root)
