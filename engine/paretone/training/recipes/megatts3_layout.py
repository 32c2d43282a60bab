"""Writing a trained MegaTTS 3 as the official release is laid out, as far as that applies to any of ours."""

from __future__ import annotations

from pathlib import Path

import yaml
from safetensors.torch import save

from paretone.files import write_atomically
from paretone.models.f5.config import SAMPLE_RATE
from paretone.models.megatts3.checkpoint import CONFIG, TRANSFORMER
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.minis.speaking import WEIGHTS


def export_transformer(folder: Path, model: MegaDiT, hop: int, stride: int) -> None:
    """Write ``diffusion_transformer/`` into ``folder``. ``hop``: samples of a frame of the duration clock, ``stride``
    of which are a latent."""
    place = folder / TRANSFORMER
    place.mkdir(parents=True, exist_ok=True)
    weights = {name: value.cpu().contiguous().half() for name, value in model.state_dict().items()}
    write_atomically(place / WEIGHTS, save(weights))
    content = {"audio_sample_rate": SAMPLE_RATE, "hop_size": hop, "win_size": 1024, "frames_multiple": stride}
    (place / CONFIG).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
