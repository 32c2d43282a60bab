"""A release of CosyVoice 2 in the official layout, with random weights and small sizes, written to a folder."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import EncoderConfig, EstimatorConfig, FlowConfig, HiftConfig
from paretone.models.cosyvoice2.hift import GENERATOR, PLAIN_CONVOLUTIONS, Hift
from paretone.models.cosyvoice2.language_model import STOPS
from paretone.models.cosyvoice2.token_to_mel import TokenToMel
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.weight_norm import PARAMETRISED, stored_shapes
from tests.engine.models.cosyvoice2.small_recording_encoder import write_recording_encoder
from tests.engine.models.cosyvoice2.small_tokenizer import write_tokenizer

CODES, TEXT_ROWS, SPEAKER_WIDTH = 100, 320, 24
QWEN2 = {
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": TEXT_ROWS,
}
FLOW = FlowConfig(
    tokens=CODES,
    speaker_width=SPEAKER_WIDTH,
    encoder=EncoderConfig(width=32, heads=2, feed_forward=48, layers=1, upsampled_layers=1),
    estimator=EstimatorConfig(channels=32, heads=1, blocks=1, middle_stages=1),
)
VOCODER = HiftConfig(channels=32, pitch_channels=16)
EAGER_END = 30.0
"""Bias of the id that ends speech: it comes as soon as it may."""


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Small random numbers of these shapes; norms keep their size."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (1.0 if "norm" in name and name.endswith("weight") else 0.0)
        + 0.1 * torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }


def language_weights(layers: int = QWEN2["num_hidden_layers"], end: float = EAGER_END) -> dict[str, Tensor]:
    """As ``llm.pt`` holds them; the head of text is the table of text."""
    config = CausalConfig.read(QWEN2 | {"num_hidden_layers": layers})
    hidden, rows = config.hidden, CODES + STOPS
    body = {name: tuple(value.shape) for name, value in CausalTransformer(config).state_dict().items()}
    tables = {
        "llm.model.model.embed_tokens.weight": (TEXT_ROWS, hidden),
        "llm_embedding.weight": (2, hidden),
        "speech_embedding.weight": (rows, hidden),
        "llm_decoder.weight": (rows, hidden),
        "llm_decoder.bias": (rows,),
    }
    weights = random_weights(tables | {f"llm.model.model.{name}": shape for name, shape in body.items()}, 1)
    weights["llm_decoder.bias"][CODES] = end
    weights["llm.model.lm_head.weight"] = weights["llm.model.model.embed_tokens.weight"]
    return weights


def flow_weights() -> dict[str, Tensor]:
    """As ``flow.pt`` holds them."""
    shapes = {name: tuple(value.shape) for name, value in TokenToMel(FLOW).state_dict().items()}
    return random_weights(shapes, 2)


def vocoder_weights() -> dict[str, Tensor]:
    """As ``hift.pt`` holds them, names with their prefix included."""
    shapes = stored_shapes(Hift(VOCODER), PARAMETRISED, PLAIN_CONVOLUTIONS)
    return {f"{GENERATOR}{name}": value for name, value in random_weights(shapes, 3).items()}


def write_release(root: Path) -> None:
    """All of it."""
    write_tokenizer(root / "CosyVoice-BlankEN")
    (root / "CosyVoice-BlankEN" / "config.json").write_text(json.dumps(QWEN2), encoding="utf-8")
    write_recording_encoder(root, CODES, SPEAKER_WIDTH)
    torch.save(language_weights(), root / "llm.pt")
    torch.save(flow_weights(), root / "flow.pt")
    torch.save(vocoder_weights(), root / "hift.pt")
