"""A masked model of a few thousand weights in the bundled one's layout, on disk; what it says is noise.

Everything but its size is what the bundled model uses, voices and vocoder included.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from paretone.front_end.phones import PHONES, PhoneVocabulary
from paretone.models.minis.natural_decoder import LATENT
from paretone.models.minis.omni_mini import HALVES, Layout
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.networks.quantised_mel import ResidualCodec, ResidualCodecConfig
from tests.engine.small_language import write_codec


def described(layout: Layout) -> dict[str, object]:
    return {
        "phones": " ".join(layout.vocabulary.phones),
        "phones_per_token": HALVES,
        "text_tokens": layout.tokens,
        "text_ids": "number of the first phone times the number of phones, plus number of the second",
        "positions": "text from 0, canvas from 0 again",
    }


LAYOUT = Layout(PhoneVocabulary(PHONES))
CODEC = ResidualCodecConfig(
    bands=LATENT, codebooks=3, codes=12, numbers=6, width=8, inner_width=8, decoder_frame_layers=2
)
CONFIG = {
    "model_type": "omnivoice",
    "audio_vocab_size": CODEC.codes + 1,
    "audio_mask_id": CODEC.codes,
    "num_audio_codebook": CODEC.codebooks,
    "llm_config": {
        "model_type": "qwen3",
        "vocab_size": LAYOUT.tokens,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
    },
}


def write_model(root: Path, seed: int = 0, layers: int = 2) -> Path:
    declared = {**CONFIG, "llm_config": {**CONFIG["llm_config"], "num_hidden_layers": layers}}
    root.mkdir(parents=True)
    torch.manual_seed(seed)
    network = MaskedNetwork(MaskedConfig.read(declared))
    weights = {
        name: value.half() if value.is_floating_point() else value for name, value in network.state_dict().items()
    }
    save_file(weights, root / "model.safetensors", {"format": "pt"})
    (root / "config.json").write_text(json.dumps(declared))
    (root / "layout.json").write_text(json.dumps(described(LAYOUT)))
    codec = ResidualCodec(CODEC)
    codec.quantiser.codebooks.normal_()
    write_codec(root / "codec", codec)
    return root
