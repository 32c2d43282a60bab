"""CosyVoice 3 of a few thousand weights, as a release on disk."""

import json
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from paretone.models.cosyvoice2.hift import PLAIN_CONVOLUTIONS, Hift
from paretone.models.cosyvoice2.language_model import COSYVOICE_3, official_shapes
from paretone.models.cosyvoice3.checkpoint import COSYVOICE3, REINFORCED_MODEL
from paretone.models.cosyvoice3.config import ADDED, ESTIMATOR, VOCODER, FlowConfig
from paretone.models.cosyvoice3.flow import TokenToMel
from paretone.models.files.checkpoints import shapes_of
from paretone.models.networks.causal import CausalConfig
from paretone.models.networks.layers import PARAMETRISED, stored_shapes
from tests.engine.models.cosyvoice2.small_release import (
    CODES,
    EAGER_END,
    QWEN2,
    SPEAKER_WIDTH,
    random_weights,
    write_recording_encoder,
    write_tokenizer,
)

TEXT_ROWS = 640
FLOW = FlowConfig(
    tokens=CODES,
    speaker_width=SPEAKER_WIDTH,
    estimator=replace(ESTIMATOR, dim=64, depth=2, heads=2, dim_head=32),
    look_ahead_channels=16,
)
assert 256 + len(ADDED) < TEXT_ROWS


def language_weights(end: float = EAGER_END, seed: int = 1) -> dict[str, Tensor]:
    """As ``llm.pt`` holds them. There is no bias that would end speech as soon as it may: the first hidden value, which
    is large everywhere, has that effect."""
    config = CausalConfig.read(QWEN2 | {"vocab_size": TEXT_ROWS})
    weights = random_weights(official_shapes(config, TEXT_ROWS, CODES + COSYVOICE_3.stops, COSYVOICE_3), seed)
    for table in ("llm.model.model.embed_tokens.weight", "speech_embedding.weight"):
        weights[table][:, 0] = 10.0
    head = weights["llm_decoder.weight"]
    head[:, 0], head[CODES:] = 0.0, 0.0
    head[CODES + COSYVOICE_3.end, 0] = end
    weights["llm.model.lm_head.weight"] = weights["llm.model.model.embed_tokens.weight"]
    return weights


def write_release(root: Path) -> None:
    blank = root / "CosyVoice-BlankEN"
    write_tokenizer(blank)
    (blank / "config.json").write_text(json.dumps(QWEN2 | {"vocab_size": TEXT_ROWS}), encoding="utf-8")
    write_recording_encoder(root, CODES, SPEAKER_WIDTH, COSYVOICE3.tokenizer)
    torch.save(language_weights(), root / "llm.pt")
    torch.save(language_weights(seed=5), root / REINFORCED_MODEL)
    flow = TokenToMel(FLOW)
    fixed = {"decoder.estimator.rotary_embed.inv_freq": flow.estimator.rotary_embed.inv_freq}
    torch.save(random_weights(shapes_of(flow.state_dict()), 2) | fixed, root / "flow.pt")
    vocoder = stored_shapes(Hift(replace(VOCODER, channels=32, pitch_channels=16)), PARAMETRISED, PLAIN_CONVOLUTIONS)
    torch.save(random_weights(vocoder, 3), root / "hift.pt")
