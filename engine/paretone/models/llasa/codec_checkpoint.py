"""XCodec2 as it is published: the original release, and the copy converted for ``transformers``.

Both hold encoder and decoder; the decoder alone is read here. Every one of its weights must be there, in its shape,
and a weight that belongs neither to the decoder nor to the encoder is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import NAMES_SHOWN, in_float32, load_strictly
from paretone.models.files.config_file import ConfigFile
from paretone.models.files.shards import Shards
from paretone.models.llasa.xcodec2 import XCodec2Config, XCodec2Decoder
from paretone.models.networks.shapes import uninitialised
from paretone.reading import named_first

CONFIG = "config.json"
ORIGINAL_ENCODER = (
    "CodecEnc.",
    "SemanticEncoder_module.",
    "SemanticDecoder_module.",
    "semantic_model.",
    "fc_prior.",
    "fc_post_s.",
)
"""The original release's encoder, and what it was trained with."""
CONVERTED_ENCODER = ("acoustic_encoder.", "semantic_encoder.", "semantic_adapter.", "fc_encoder.")
_WINDOW = "generator.head.istft.window"
_CONVERTED = "acoustic_decoder."
_NAMES: tuple[tuple[str, str], ...] = (
    (r"^quantizer\.", "generator.quantizer."),
    (r"^acoustic_decoder\.fc\.", "fc_post_a."),
    (r"^acoustic_decoder\.norm\.", "generator.backbone.final_layer_norm."),
    (r"^acoustic_decoder\.head\.linear\.", "generator.head.out."),
    (r"^acoustic_decoder\.layers\.", "generator.backbone.transformers."),
    (r"^acoustic_decoder\.", "generator.backbone."),
    (r"\.self_attn\.o_proj\.", ".att.c_proj."),
    (r"\.self_attn\.", ".att."),
    (r"\.input_layernorm\.", ".att_norm."),
    (r"\.post_attention_layernorm\.", ".ffn_norm."),
)
"""Converted names to original ones, in this order."""


def load_decoder(
    folder: Path, device: torch.device | str = "cpu", check: Callable[[], None] = lambda: None
) -> XCodec2Decoder:
    """The decoder in ``folder``, of either release, float32. ``check`` is called between weights and may raise.

    Raises :class:`CheckpointError` that names what is missing, too much or of another shape.
    """
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder} is missing: LLaSA's speech is decoded by XCodec2. Download the model again, or put the folder "
            "of HKUSTAudio/xcodec2-hf or HKUSTAudio/xcodec2 there."
        )
    shards = Shards.find(folder)
    weights, others = shards.read(_is_decoder, check)
    converted = any(name.startswith(_CONVERTED) for name in weights)
    strange = [name for name in others if not name.startswith(CONVERTED_ENCODER if converted else ORIGINAL_ENCODER)]
    if strange:
        raise CheckpointError(f"{shards.where} is not XCodec2: it holds {named_first(strange, NAMES_SHOWN)}.")
    if converted:
        weights = original_names(weights, shards.where)
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    config = XCodec2Config.from_shapes(shapes, shards.where, _heads(folder / CONFIG) if converted else None)
    if converted:
        weights[_WINDOW] = torch.hann_window(config.window)  # The converted release does not store it.
    with uninitialised(weights, shards.where):
        decoder = XCodec2Decoder(config)
    load_strictly(decoder, in_float32(weights), shards.where)
    return decoder.eval().requires_grad_(False).to(device)


def original_names(weights: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """The converted release's decoder under its original names, but for the window, which that does not store.

    The conversion has put the rows of queries and keys into another order within each head, the same for both. As the
    products of queries with keys are sums over these rows, nothing need be put back.
    Raises :class:`CheckpointError` if one of queries, keys and values is missing.
    """
    renamed: dict[str, Tensor] = {}
    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in weights.items():
        for pattern, replacement in _NAMES:
            name = re.sub(pattern, replacement, name)
        split = re.fullmatch(r"(.*\.att\.)([qkv])_proj(\.\w+)", name)
        if split:
            parts.setdefault(f"{split[1]}c_attn{split[3]}", {})[split[2]] = value
        else:
            renamed[name] = value
    for name, found in parts.items():
        if len(found) < 3:
            missing = ", ".join(f"{one}_proj" for one in "qkv" if one not in found)
            raise CheckpointError(f"{where} lacks {missing}, which belongs next to {name}; download it again.")
        renamed[name] = torch.cat([found[one] for one in "qkv"])
    return renamed


def _is_decoder(name: str) -> bool:
    return name.startswith(("generator.", "fc_post_a.", _CONVERTED, "quantizer."))


def _heads(path: Path) -> int:
    """Number of heads by the converted release's configuration."""
    return ConfigFile.read(path).number("num_attention_heads", 16)
