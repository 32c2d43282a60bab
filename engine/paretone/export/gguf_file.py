"""A language model as a GGUF file for llama.cpp: its sizes, tensors and vocabulary.

Written by the package ``gguf`` (extra ``gguf``). Vectors are float32; matrices keep their precision. Architectures:
``llama`` (rows of queries and keys in llama.cpp's order, which rotates neighbours instead of halves) and ``qwen2``
(with a bias of the scores: CosyVoice 2's, and a prohibitive one for ids that cannot be spoken).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from paretone.errors import CheckpointError, ProfileError
from paretone.export.delivery import Made
from paretone.export.language_bundle import CausalModel
from paretone.extras import NO_GGUF, needing
from paretone.models.networks.causal import CausalConfig, rotary_frequencies
from paretone.reading import readable

if TYPE_CHECKING:
    import gguf

UNSPOKEN = -1e9
"""Bias of ids that cannot be spoken: their probability is 0."""
CONTEXT = 4096
"""Default context length."""
PIECES = {"llama": "llama-bpe", "qwen2": "qwen2"}
"""llama.cpp's names of the pre-tokenisers, by ``model_type``."""


@dataclass(frozen=True)
class GgufVocabulary:
    tokens: tuple[str, ...] = field(repr=False)
    """By id."""
    kinds: tuple[int, ...] = field(repr=False)
    """``gguf.TokenType`` of each."""
    merges: tuple[str, ...] = field(repr=False)
    begin: int | None = None
    """Id of the token that begins a text."""

    @classmethod
    def of(cls, tokenizer: Mapping[str, Any], size: int) -> GgufVocabulary:
        """Read a ``tokenizer.json``; ids up to ``size`` without a token are unused. Raises :class:`CheckpointError`."""
        kind = _gguf().TokenType
        with readable(CheckpointError, "The tokenizer is not one of byte pairs", "restore the model"):
            model, added = tokenizer["model"], tokenizer["added_tokens"]
            listed = {number: token for token, number in model["vocab"].items()}
            kinds = dict.fromkeys(listed, kind.NORMAL)
            for one in added:
                listed[one["id"]] = one["content"]
                kinds[one["id"]] = kind.CONTROL if one["special"] else kind.USER_DEFINED
            merges = tuple(one if isinstance(one, str) else " ".join(one) for one in model["merges"])
        begin = next((number for number, token in listed.items() if token == "<|begin_of_text|>"), None)
        tokens = tuple(listed.get(number, f"[PAD{number}]") for number in range(size))
        return cls(tokens, tuple(int(kinds.get(number, kind.UNUSED)) for number in range(size)), merges, begin)


def gguf_file(model: CausalModel, vocabulary: GgufVocabulary, title: str) -> Made:
    """File of ``model``, to be written. Raises :class:`ProfileError` if it cannot be."""
    sizes = CausalConfig.read(model.config)
    if sizes.width != sizes.hidden:
        raise ProfileError(
            f"llama.cpp needs heads that make up the hidden size, {sizes.hidden}, and not {sizes.width}."
        )
    arrays = [(name, _array(value)) for name, value in tensors(model)]
    size = sum(array.nbytes for _, (array, _) in arrays)

    def write(path: Path, wrote: Callable[[int], None]) -> None:
        writer = _gguf().GGUFWriter(path, architecture(model))
        try:
            _describe(writer, model, vocabulary, title)
            for name, (array, kind) in arrays:
                writer.add_tensor_info(name, array.shape, array.dtype, array.nbytes, kind)
            writer.write_header_to_file(path)
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
            for _, (array, _) in arrays:
                writer.write_tensor_data(array)
                wrote(array.nbytes)
        finally:
            writer.close()

    return Made(write, size)


def architecture(model: CausalModel) -> str:
    return str(model.config["model_type"])


def tensors(model: CausalModel) -> Iterator[tuple[str, Tensor]]:
    """All tensors by llama.cpp's names, with rows in its order."""
    package = _gguf()
    sizes = CausalConfig.read(model.config)
    kind = {"llama": package.MODEL_ARCH.LLAMA, "qwen2": package.MODEL_ARCH.QWEN2}[architecture(model)]
    names = package.get_tensor_name_map(kind, sizes.layers)
    for official, value in model.tensors.items():
        name = names.get_name(official, (".weight", ".bias"))
        if name is None:
            raise CheckpointError(f"llama.cpp has no place for {official}; export for another target.")
        if architecture(model) == "llama":
            heads = {"q_proj": sizes.heads, "k_proj": sizes.key_value_heads}.get(official.split(".")[-2])
            if heads is not None:  # Interleave the two halves of each head, by rows (or values).
                halves = value.reshape(heads, 2, value.shape[0] // heads // 2, *value.shape[1:])
                value = halves.transpose(1, 2).reshape(value.shape)
        yield name, value.float() if value.dim() == 1 else value
    if sizes.rope_scaling is not None:
        plain = sizes.rope_theta ** -(torch.arange(0, sizes.head_width, 2).float() / sizes.head_width)
        yield "rope_freqs.weight", plain / rotary_frequencies(sizes)
    if architecture(model) == "qwen2":
        yield "output.bias", score_bias(model)


def score_bias(model: CausalModel) -> Tensor:
    """Bias of the scores, (ids,) float32."""
    added = torch.full((model.ids.size,), UNSPOKEN)
    spoken = torch.tensor(model.ids.spoken)
    added[spoken] = torch.zeros(len(spoken)) if model.bias is None else model.bias.float()
    return added


def _describe(writer: gguf.GGUFWriter, model: CausalModel, vocabulary: GgufVocabulary, title: str) -> None:
    sizes, ids = CausalConfig.read(model.config), model.ids
    writer.add_name(title)
    writer.add_vocab_size(ids.size)
    writer.add_context_length(int(model.config.get("max_position_embeddings", CONTEXT)))
    writer.add_embedding_length(sizes.hidden)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.feed_forward)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.key_value_heads)
    writer.add_rope_dimension_count(sizes.head_width)
    writer.add_rope_freq_base(sizes.rope_theta)
    writer.add_layer_norm_rms_eps(sizes.epsilon)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PIECES[architecture(model)])
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types(list(vocabulary.kinds))
    writer.add_token_merges(list(vocabulary.merges))
    writer.add_add_bos_token(False)
    if vocabulary.begin is not None:
        writer.add_bos_token_id(vocabulary.begin)
    # All of these end a text; llama.cpp has names for three.
    for add, stop in zip(
        (writer.add_eos_token_id, writer.add_eot_token_id, writer.add_eom_token_id), ids.stops, strict=False
    ):
        add(stop)


def _array(value: Tensor) -> tuple[np.ndarray, Any]:
    """A tensor as an array; if numpy lacks its type, its bytes and that type."""
    value = value.contiguous()
    if value.dtype == torch.bfloat16:
        return value.view(torch.uint8).numpy(), _gguf().GGMLQuantizationType.BF16
    return value.numpy(), None


def _gguf() -> Any:
    with needing(ProfileError, NO_GGUF):
        import gguf
    return gguf
