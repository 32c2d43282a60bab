"""A model in the layout of the bundled MegaTTS 3, with random weights and small sizes, written to a folder."""

from pathlib import Path

import torch

from paretone.front_end.phones import PHONES
from paretone.models.megatts3.config import LATENT_STRIDE, DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.minis.megatts3_mini import DURATION_HOP, VOCABULARY
from paretone.models.minis.natural_vocoder import GROUPED
from tests.engine.awake import awake
from tests.tools.recipes.natural_megatts3 import export_transformer

LAYERS = 3
SIZES = {"dim": 64, "layers": LAYERS, "heads": 1, "ff_hidden": 96, "local_cond": 24, "phone_ff_hidden": 64}
SMALL_DIT = DiTConfig(**SIZES, latent=GROUPED, ctx_mask=4, phone_layers=1)


def write_bundled(root: Path) -> None:
    """All parts; the vocoder is the one that ships."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        backbone = MegaDiT(SMALL_DIT)
        awake(backbone)
    export_transformer(root, backbone, DURATION_HOP, LATENT_STRIDE)
    (root / VOCABULARY).write_text("".join(phone + "\n" for phone in PHONES), encoding="utf-8")
