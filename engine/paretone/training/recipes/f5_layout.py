"""Writing a trained F5 model as the official releases are laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from paretone.front_end.phones import PhoneVocabulary
from paretone.models.f5.checkpoint import NATURAL_PHONES, save_official
from paretone.models.f5.config import HOP, MEL_BANDS, SAMPLE_RATE
from paretone.models.f5.dit import DiT


def export_layout(folder: Path, name: str, model: DiT, vocabulary: PhoneVocabulary, step: int) -> None:
    """Write ``model.safetensors`` (float16, official keys), ``model.yaml``, ``vocab.txt``."""
    folder.mkdir(parents=True, exist_ok=True)
    save_official(folder / "model.safetensors", model, step)
    (folder / "model.yaml").write_text(yaml.safe_dump(_configuration(name, model), sort_keys=False), encoding="utf-8")
    (folder / "vocab.txt").write_text("".join(phone + "\n" for phone in vocabulary.phones), encoding="utf-8")


def _configuration(name: str, model: DiT) -> dict[str, dict]:
    config = model.config
    entries = ("dim", "depth", "heads", "ff_mult", "text_dim", "text_mask_padding", "conv_layers")
    spectrogram: dict[str, Any] = {"target_sample_rate": SAMPLE_RATE, "n_mel_channels": MEL_BANDS, "hop_length": HOP}
    spectrogram |= {"win_length": 1024, "n_fft": 1024, "mel_spec_type": "vocos"}
    return {
        "model": {
            "name": name,
            "tokenizer": "custom",
            "text_frontend": NATURAL_PHONES,
            "backbone": config.backbone,
            "arch": {entry: getattr(config, entry) for entry in entries},
            "mel_spec": spectrogram,
        }
    }
