"""The names of WavLM's and wav2vec 2.0's weights: as fairseq, UniSpeech and s3prl have them, and as transformers
does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

_LAYER = {
    "self_attn.relative_attention_bias": "attention.rel_attn_embed",
    "self_attn.grep_a": "attention.gru_rel_pos_const",
    "self_attn.grep_linear": "attention.gru_rel_pos_linear",
    "self_attn_layer_norm": "layer_norm",
    "self_attn": "attention",
    "fc1": "feed_forward.intermediate_dense",
    "fc2": "feed_forward.output_dense",
    "final_layer_norm": "final_layer_norm",
}
_WHOLE = {
    "mask_emb": "masked_spec_embed",
    "layer_norm": "feature_projection.layer_norm",
    "post_extract_proj": "feature_projection.projection",
    "encoder.layer_norm": "encoder.layer_norm",
    "encoder.pos_conv.0.weight_g": "encoder.pos_conv_embed.conv.parametrizations.weight.original0",
    "encoder.pos_conv.0.weight_v": "encoder.pos_conv_embed.conv.parametrizations.weight.original1",
    "encoder.pos_conv.0": "encoder.pos_conv_embed.conv",
}


def renamed(name: str) -> str:
    """The name that transformers has for the weight that others call ``name``. Raises :class:`KeyError`."""
    if found := re.fullmatch(r"feature_extractor\.conv_layers\.(\d+)\.0\.(weight|bias)", name):
        return f"feature_extractor.conv_layers.{found[1]}.conv.{found[2]}"
    # The norm is the third of four modules where it goes over groups, and in a separate module over channels.
    if found := re.fullmatch(r"feature_extractor\.conv_layers\.(\d+)\.2\.(?:1\.)?(weight|bias)", name):
        return f"feature_extractor.conv_layers.{found[1]}.layer_norm.{found[2]}"
    if found := re.fullmatch(r"(encoder\.layers\.\d+)\.(.+)", name):
        return f"{found[1]}.{_replaced(found[2], _LAYER)}"
    return _replaced(name, _WHOLE)


def _replaced(name: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        if name == old or name.startswith(f"{old}."):
            return new + name[len(old) :]
    raise KeyError(name)


def renamed_weights(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those of ``weights`` whose names begin with ``prefix``, as transformers names them. Raises :class:`KeyError`."""
    return {renamed(name[len(prefix) :]): value for name, value in weights.items() if name.startswith(prefix)}
