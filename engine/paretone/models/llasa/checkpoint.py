"""LLaSA's language model as published: a Hugging Face folder of a Llama, with ``config.json``, ``tokenizer.json`` and
weights in one file (1B) or in shards (3B, 8B).

Only the head's rows of codes and of the end of speech are kept. The others are never sampled, so dropping them is
exact, and saves a fifth of the 1B model's reading per token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.base import DraftWeights, StudentWeights
from paretone.models.families.language_network import DraftTensors, LanguageNetwork, TokenModel
from paretone.models.files.checkpoints import (
    NAMES_SHOWN,
    Shards,
    check_shapes,
    in_float32,
    load_strictly,
    loaded_strictly,
    read_weights,
    require_fractions,
    require_numbers,
    require_part,
    shapes_of,
)
from paretone.models.files.config_file import ConfigFile
from paretone.models.llasa.tokenizer import LlasaTokenizer
from paretone.models.llasa.xcodec2 import XCodec2Config, XCodec2Decoder
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.shapes import without_weights
from paretone.observer import Check
from paretone.reading import named_first

CONFIG = "config.json"
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
BODY, LAYERS = "model.", "model.layers."
TEXTS = "texts"
"""Name of the table (ids before the first code, hidden) that embeds texts."""


@dataclass(frozen=True)
class LlasaFolder:
    """A release, with the precision and device of its networks. All reading methods raise :class:`CheckpointError` that
    names missing, unexpected or differently shaped weights."""

    shards: Shards
    tokenizer: LlasaTokenizer
    config: CausalConfig
    rows: int
    """Rows of the official tables."""
    tied: bool
    """Whether the head is the embedding."""
    dtype: torch.dtype = torch.float32
    device: torch.device | str = "cpu"

    @classmethod
    def read(cls, folder: Path, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> LlasaFolder:
        """Read everything except the weights."""
        require_part(folder / CONFIG, "it belongs in the folder of LLaSA's weights, with tokenizer.json")
        file = ConfigFile.read(folder / CONFIG)
        file.require("model_type", "llama")
        config, rows, tied = CausalConfig.read(file), file.number("vocab_size"), file.flag("tie_word_embeddings", False)
        tokenizer = LlasaTokenizer.read(folder)
        if rows < tokenizer.vocabulary:
            raise CheckpointError(
                f"{folder} is not LLaSA: its model knows {rows} tokens, but its tokenizer {tokenizer.vocabulary}."
            )
        return cls(Shards.find(folder), tokenizer, config, rows, tied, dtype, device)

    def plain(self, check: Check = lambda: None) -> LanguageNetwork:
        """The network as trained, on the device; ``check`` may raise to cancel."""
        weights, _ = self.shards.read(check=check)
        return self._network(weights, self.config, self.tied, self.shards.where, check)

    def student(self, student: StudentWeights) -> LanguageNetwork:
        """Optimised network of a student, which has a separate head."""
        config = replace(self.config, layers=student.depth)
        return optimised(self._network(read_weights(Path(student.path)), config, False, student.path))

    def draft(self, draft: DraftWeights) -> DraftTensors:
        return DraftTensors.read(draft, LAYERS, HEAD, self._spoken)

    def _network(
        self, weights: Mapping[str, Tensor], config: CausalConfig, tied: bool, where: str, check: Check = lambda: None
    ) -> LanguageNetwork:
        """Network from all tensors by their official names."""
        weights = dict(weights)
        with without_weights(weights, where):
            transformer = CausalTransformer(config)
        expected = {f"{BODY}{name}": tuple(value.shape) for name, value in transformer.state_dict().items()}
        tables = (EMBEDDING,) if tied and HEAD not in weights else (EMBEDDING, HEAD)
        expected |= dict.fromkeys(tables, (self.rows, config.hidden))
        check_shapes(expected, shapes_of(weights), where)
        require_fractions(weights, where)
        for name in list(weights):  # One by one, so that not all are in memory twice.
            check()
            weights[name] = weights[name].to(self.device, self.dtype)
        require_numbers({name: weights[name] for name in tables}, where)
        embedding, head = weights.pop(EMBEDDING), weights.pop(HEAD, None)
        inner = {name.removeprefix(BODY): value for name, value in weights.items()}
        load_strictly(transformer, inner, where, assign=True)
        codes = self._spoken(embedding)
        tokens = TokenModel(
            transformer, codes, codes if tied or head is None else self._spoken(head), codes=self.tokenizer.codes
        )
        texts = embedding[: self.tokenizer.first_code].clone()
        return LanguageNetwork(tokens.eval().requires_grad_(False), {TEXTS: texts})

    def _spoken(self, table: Tensor) -> Tensor:
        """Select the :attr:`spoken_rows` of an official table."""
        if table.shape != (self.rows, self.config.hidden):
            raise CheckpointError(
                f"A draft for {self.shards.where} needs a head of ({self.rows}, {self.config.hidden})."
            )
        return table[self.spoken_rows.to(table.device)]

    @property
    def spoken_rows(self) -> Tensor:
        """Ids of the codes and, last, of the end of speech, (codes + 1,), in the order of local ids."""
        first, codes = self.tokenizer.first_code, self.tokenizer.codes
        return torch.tensor([*range(first, first + codes), self.tokenizer.end])


def optimised(network: LanguageNetwork) -> LanguageNetwork:
    return LanguageNetwork(network.tokens.optimised(), network.tables)


def parameters(network: LanguageNetwork) -> int:
    """Number of parameters of a plain network, counting a shared embedding and head once."""
    tables = (network.tables[TEXTS], network.tokens.embedding, network.tokens.head)
    once = {one.data_ptr(): one.numel() for one in tables}
    return sum(once.values()) + sum(one.numel() for one in network.tokens.transformer.parameters())


# XCodec2 as published: the original release, and the copy converted for ``transformers``.
#
# Both contain encoder and decoder; only the decoder is read here. Each of its weights is required, in its shape, and a
# weight of neither the decoder nor the encoder is an error.
_ENCODER = r"(CodecEnc|SemanticEncoder_module|SemanticDecoder_module|semantic_model|fc_prior|fc_post_s)\."
"""Encoder of the original release, and its training parts."""
_CONVERTED_ENCODER = r"(acoustic_encoder|semantic_encoder|semantic_adapter|fc_encoder)\."
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
"""Patterns of converted names with original ones, applied in order."""


def load_decoder(folder: Path, device: torch.device | str = "cpu", check: Check = lambda: None) -> XCodec2Decoder:
    """Load the decoder in ``folder``, of either release, in float32. ``check`` is called between weights and may raise.
    Raises :class:`CheckpointError` that names missing, unexpected or differently shaped weights."""
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder} is missing: LLaSA's speech is decoded by XCodec2. Put the folder of HKUSTAudio/xcodec2-hf or "
            "HKUSTAudio/xcodec2 there or next to the model's, choose it as the vocoder, or download a release of LLaSA."
        )
    shards = Shards.find(folder)
    weights, others = shards.read(
        lambda name: name.startswith(("generator.", "fc_post_a.", _CONVERTED, "quantizer.")), check
    )
    converted = any(name.startswith(_CONVERTED) for name in weights)
    strange = [name for name in others if not re.match(_CONVERTED_ENCODER if converted else _ENCODER, name)]
    if strange:
        raise CheckpointError(f"{shards.where} is not XCodec2: it holds {named_first(strange, NAMES_SHOWN)}.")
    if converted:
        weights = original_names(weights, shards.where)
    shapes = shapes_of(weights)
    heads = ConfigFile.read(folder / CONFIG).number("num_attention_heads", 16) if converted else None
    config = XCodec2Config.from_shapes(shapes, shards.where, heads)
    if converted:
        weights[_WINDOW] = torch.hann_window(config.window)  # The converted release does not store it.
    return loaded_strictly(lambda: XCodec2Decoder(config), in_float32(weights), shards.where).to(device)


def original_names(weights: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """The converted release's decoder under its original names, without the window, which it does not store.

    The conversion has permuted the rows of queries and keys within each head, both alike. Their products are sums over
    these rows, so the order does not matter. Raises :class:`CheckpointError` if queries, keys or values are missing.
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
