"""A Vocos of a few thousand weights, on disk as the release."""

from pathlib import Path

import torch
import yaml

from paretone.models.networks.vocos import Vocos, VocosConfig

SMALL = VocosConfig(bands=20, width=16, inner_width=24, layers=2, window=64, hop=16)


def write_vocos(folder: Path, config: VocosConfig = SMALL, **changes: object) -> Vocos:
    widths = {"input_channels": config.bands, "dim": config.width, "intermediate_dim": config.inner_width}
    parts = {
        "feature_extractor": {"init_args": {"sample_rate": config.sample_rate, "padding": "center"}},
        "backbone": {"init_args": {**widths, "num_layers": config.layers}},
        "head": {
            "init_args": {"dim": config.width, "n_fft": config.window, "hop_length": config.hop, "padding": "center"}
        },
    }
    parts["head"]["init_args"].update(changes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(parts))
    torch.manual_seed(1)
    model = Vocos(config).eval()
    weights = model.state_dict() | {"feature_extractor.mel_spec.spectrogram.window": torch.zeros(64)}
    torch.save(weights, folder / "pytorch_model.bin")
    return model
