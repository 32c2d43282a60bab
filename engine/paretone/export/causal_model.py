"""A language model as the class of transformers that has its architecture holds it: Llama or Qwen2, in one vocabulary.

CosyVoice 2's separate tables of text, marks and speech become one, as in training. Its head scores speech alone: rows
of text are zero, and the bias of its scores, which no such class has, is kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.export.language import CONFIG, HEAD, CosySource, HuggingFaceSource, Source, read_config, shallower
from paretone.models.cosyvoice2.checkpoint import CONFIG as COSY_CONFIG
from paretone.models.cosyvoice2.language_model import MARKS, TEXT, CosyNames
from paretone.models.families.official_ids import OfficialIds

EMBEDDING, BODY = "model.embed_tokens.weight", "model."
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
"""The classes by ``model_type``."""


@dataclass(frozen=True)
class CausalModel:
    """A language model, complete."""

    config: Mapping[str, Any]
    """Content of ``config.json``."""
    tensors: Mapping[str, Tensor] = field(repr=False)
    """By the names of the class; without ``lm_head.weight`` if that is the embedding."""
    ids: OfficialIds
    bias: Tensor | None = field(default=None, repr=False)
    """(codes + stops,), added to the scores of :attr:`OfficialIds.spoken`."""

    @property
    def head(self) -> Tensor:
        """(ids, hidden)."""
        return self.tensors.get(HEAD, self.tensors[EMBEDDING])


def causal_model(
    source: Source, tensors: Mapping[str, Tensor], retained: Sequence[int], ids: OfficialIds
) -> CausalModel:
    """The model with the ``tensors`` of a checkpoint, student or draft of ``source``, by official names and numbered
    without gaps, of whose layers it has those ``retained``. Raises :class:`CheckpointError`."""
    if isinstance(source, CosySource):
        made = _joined(read_config(source.root / COSY_CONFIG), tensors, ids)
    elif isinstance(source, HuggingFaceSource):
        config = read_config(source.root / CONFIG)
        tied = HEAD not in tensors
        made = CausalModel({**config, "tie_word_embeddings": tied}, tensors, ids)
    else:
        raise CheckpointError(f"{source.root} holds a model that no class of transformers has.")
    config = shallower(made.config, retained)
    config.pop("torch_dtype", None)
    config |= {
        "architectures": [CLASSES[str(config["model_type"])]],
        "vocab_size": len(made.tensors[EMBEDDING]),
        "dtype": _type_of(made.tensors),
        "bos_token_id": None,
        "eos_token_id": list(ids.stops),
        "pad_token_id": ids.stops[0],
    }
    return replace(made, config=config, tensors={name: value.contiguous() for name, value in made.tensors.items()})


def _joined(config: Mapping[str, Any], tensors: Mapping[str, Tensor], ids: OfficialIds) -> CausalModel:
    """CosyVoice 2's tensors in one vocabulary."""
    names = CosyNames(len(tensors[TEXT]), len(tensors[MARKS]))
    parts = names.parts(tensors)
    unspoken = parts.head.new_zeros(ids.first_code, parts.head.shape[1])
    named = {BODY + name: value for name, value in parts.transformer.items()}
    named |= {EMBEDDING: parts.embedding, HEAD: torch.cat([unspoken, parts.head])}
    return CausalModel({**config, "tie_word_embeddings": False}, named, ids, parts.bias)


def _type_of(tensors: Mapping[str, Tensor]) -> str:
    """The type that holds all of them exactly, as ``config.json`` names it."""
    types = {value.dtype for value in tensors.values()}
    return str(types.pop() if len(types) == 1 else torch.float32).removeprefix("torch.")
